#!/bin/sh
# swapd-policy(5) out of docs/policy.md: policy-page.sh LOWDOWN POLICY.MD, to standard output.
# A row of a table becomes a paragraph with a tag: a terminal is too narrow for four columns.
set -eu
"$1" -s -tman -M title=SWAPD-POLICY -M section=5 -M date= -M source=swapd "$2" | awk '
  /^\.TH / { print; print ".SH NAME"; print "swapd-policy \\- which programs swapd manages, and what their waits are worth"; next }
  # The first heading is the name of the text, the others are of the page.
  /^\.SH$/ && !begun { begun = 1; getline; print ".SH DESCRIPTION"; next }
  /^\.SS$/ { print ".SH"; next }

  /^\.TS$/ { table = 1; rows = 0; cells = 0; next }
  /^\.TE$/ { table = 0; print ".PP"; next }
  table && /^T\{$/ { cell = ""; inside = 1; next }
  table && /^T\}/ {
    row[++cells] = cell
    inside = 0
    if ($0 ~ /\|T\{$/) { cell = ""; inside = 1; next }
    if (++rows > 1) {  # the first has the names of the columns
      extra = ""
      for (i = 2; i < cells; i++) if (row[i] != "") extra = extra (extra == "" ? "" : "; ") row[i]
      print ".TP"
      print row[1]
      print (extra == "" ? "" : "(" extra ") ") row[cells]
    }
    cells = 0
    next
  }
  table { if (inside) cell = cell (cell == "" ? "" : " ") $0; next }
  { print }
'
