# fish completion for swapctl(1).
function __swapctl_complete
    set -l before (commandline -opc)
    set -l lines ($before[1] complete -- $before[2..-1] (commandline -ct) 2>/dev/null)
    switch "$lines[1]"
        case ':file'
            __fish_complete_path (commandline -ct)
        case ':command*'
            # As after sudo: from there on it is another program's command line.
            set -l first (math (string replace ':command ' '' -- $lines[1]) + 2)
            complete -C (string join -- ' ' (string escape -- $before[$first..-1]) (commandline -ct))
        case '*'
            printf '%s\n' $lines
    end
end
complete -c swapctl -f -a '(__swapctl_complete)'
