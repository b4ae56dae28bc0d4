# bash completion for swapctl(1).
_swapctl() {
  local lines line i
  mapfile -t lines < <("${COMP_WORDS[0]}" complete -- "${COMP_WORDS[@]:1:COMP_CWORD}" 2>/dev/null)
  case ${lines[0]-} in
    :file)
      compopt -o default
      return
      ;;
    :command*)
      # As after sudo: from there on it is another program's command line.
      if declare -F _command_offset >/dev/null; then
        _command_offset $((${lines[0]#:command } + 1))
      else
        mapfile -t COMPREPLY < <(compgen -c -- "${COMP_WORDS[COMP_CWORD]}")
      fi
      return
      ;;
  esac
  for ((i = 0; i < ${#lines[@]}; i++)); do
    line=${lines[i]}
    # What a process is called is shown, and not put on the command line.
    if [[ $line == *$'\t'* && ${#lines[@]} -gt 1 && $line == [0-9]* ]]; then
      COMPREPLY+=("${line%%$'\t'*} (${line#*$'\t'})")
    else
      COMPREPLY+=("${line%%$'\t'*}")
    fi
  done
}
complete -F _swapctl swapctl
