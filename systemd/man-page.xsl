<?xml version="1.0" encoding="UTF-8"?>
<!-- org.swapd1(5) out of org.swapd1.xml: each member with its arguments, and the comment before it as its text. -->
<xsl:stylesheet version="1.0" xmlns:xsl="http://www.w3.org/1999/XSL/Transform">
 <xsl:output method="text" encoding="UTF-8"/>
 <xsl:strip-space elements="*"/>

 <xsl:template match="/node">
  <xsl:text>.TH ORG.SWAPD1 5 "" swapd
.ad l
.SH NAME
org.swapd1 \- what swapd serves over D-Bus
.SH SYNOPSIS
.nf
busctl introspect org.swapd1 /org/swapd1
busctl call org.swapd1 /org/swapd1 org.swapd1.Manager Status
busctl tree org.swapd1
.fi
.SH DESCRIPTION
swapd(8) serves
.BR </xsl:text>
  <xsl:value-of select="@name"/>
  <xsl:text> ,
and below it processes, classes and resources, which org.freedesktop.DBus.ObjectManager lists (it needs org.swapd1.view, as do their
properties), on its private socket and, with \-\-bus, on a message bus, where its name is
.BR org.swapd1 .
Larger things come as JSON texts, whose fields swapctl(1) describes. Root may call everything. On the system bus others may call what
polkit(8) grants them; the action that a call needs is named below. A call that needs a password is refused unless its message allows
interactive authorization.
</xsl:text>
  <xsl:apply-templates select="interface"/>
  <xsl:text>.SH ERRORS
.TP
.B org.swapd1.Error.InvalidArgument
An argument that cannot be.
.TP
.B org.swapd1.Error.NotFound
No such process, thread or class.
.TP
.B org.freedesktop.DBus.Error.AccessDenied
The caller may not.
.TP
.B org.freedesktop.DBus.Error.InteractiveAuthorizationRequired
The caller might, with a password.
.TP
.B org.freedesktop.DBus.Error.LimitsExceeded
Too many requests a second: [quota] in swapd\-policy(5).
.TP
.B org.swapd1.Error.Failed
Everything else. The message is one line for people.
.SH SEE ALSO
busctl(1), swapctl(1), swapd\-policy(5), polkit(8), swapd(8)
</xsl:text>
 </xsl:template>

 <xsl:template match="interface">
  <xsl:text>.SH </xsl:text>
  <xsl:value-of select="translate(@name, 'abcdefghijklmnopqrstuvwxyz', 'ABCDEFGHIJKLMNOPQRSTUVWXYZ')"/>
  <xsl:text>&#10;</xsl:text>
  <xsl:value-of select="normalize-space(preceding-sibling::node()[self::comment() or self::*][1][self::comment()])"/>
  <xsl:text>&#10;</xsl:text>
  <xsl:for-each select="method|signal|property">
   <xsl:if test="not(name() = name(preceding-sibling::*[1]))">
    <xsl:text>.SS </xsl:text>
    <xsl:choose>
     <xsl:when test="self::method">Methods</xsl:when>
     <xsl:when test="self::signal">Signals</xsl:when>
     <xsl:otherwise>Properties</xsl:otherwise>
    </xsl:choose>
    <xsl:text>&#10;</xsl:text>
   </xsl:if>
   <xsl:text>.TP&#10;\fB</xsl:text>
   <xsl:value-of select="@name"/>
   <xsl:text>\fR</xsl:text>
   <xsl:choose>
    <xsl:when test="self::property"><xsl:text> </xsl:text><xsl:value-of select="@type"/></xsl:when>
    <xsl:otherwise>
     <xsl:text>(</xsl:text>
     <xsl:apply-templates select="arg[not(@direction = 'out')]"/>
     <xsl:text>)</xsl:text>
     <xsl:if test="arg[@direction = 'out']">
      <xsl:text> \(-> </xsl:text>
      <xsl:apply-templates select="arg[@direction = 'out']"/>
     </xsl:if>
    </xsl:otherwise>
   </xsl:choose>
   <xsl:text>&#10;</xsl:text>
   <xsl:value-of select="normalize-space(preceding-sibling::node()[self::comment() or self::*][1][self::comment()])"/>
   <xsl:text>&#10;</xsl:text>
  </xsl:for-each>
 </xsl:template>

 <xsl:template match="arg">
  <xsl:if test="position() > 1">, </xsl:if>
  <xsl:value-of select="@type"/>
  <xsl:text> \fI</xsl:text>
  <xsl:value-of select="@name"/>
  <xsl:text>\fR</xsl:text>
 </xsl:template>
</xsl:stylesheet>
