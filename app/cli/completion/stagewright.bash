# bash completion for stagewright: verbs, options, schedule names, run files and the runs in them.

_stagewright_verbs() {
    "$1" --help 2>/dev/null | awk '/^Verbs:/ { on = 1; next } on && NF { print $1 }  on && !NF { exit }'
}

_stagewright_options() {
    "$1" "$2" --help 2>/dev/null | grep -oE -- '(^|[ ,])--[a-z][a-z-]*' | tr -d ' ,' | sort -u
}

_stagewright_schedules() {
    "$1" schedules 2>/dev/null | awk 'NR > 1 && !NF { exit } NR > 1 { print $1 }'
}

# Names of the runs in the first run file on the line.
_stagewright_runs() {
    local program=$1 word
    shift
    for word in "$@"; do
        [[ $word == *.stagewright && -f $word ]] || continue
        "$program" sql "$word" --csv 'SELECT name FROM runs' 2>/dev/null | tail -n +2
        return
    done
}

_stagewright_files() { # folders, and files with one of the suffixes
    local current=$1 suffix
    shift
    compopt -o filenames 2>/dev/null
    mapfile -t COMPREPLY < <(
        compgen -d -- "$current"
        for suffix in "$@"; do compgen -f -X "!*.$suffix" -- "$current"; done
    )
}

# What the last option takes, as the program says when it is given something else.
_stagewright_choices() { # PROGRAM VERB WORDS… OPTION
    "$@" '?' 2>&1 | sed -nE "s/.*takes one of (.*), not.*/\\1/p" | sed 's/ and / /; s/,//g'
}

_stagewright_surveys() { "$1" explore 2>/dev/null | awk '/^[a-z]/ { print $1 }'; }
_stagewright_hosts() { "$1" hosts list 2>/dev/null | awk 'NR > 1 && /^[^ ]/ { print $1 }'; }
_stagewright_jobs() { "$1" hosts jobs 2>/dev/null | awk 'NR > 1 { print $1 }'; }

_stagewright_words() { # CURRENT WORDS
    mapfile -t COMPREPLY < <(compgen -W "$2" -- "$1")
}

_stagewright() {
    local program=${COMP_WORDS[0]} current=${COMP_WORDS[COMP_CWORD]} previous='' verb=''
    [ "$COMP_CWORD" -eq 0 ] || previous=${COMP_WORDS[COMP_CWORD - 1]}
    [ "$COMP_CWORD" -le 1 ] || verb=${COMP_WORDS[1]}
    COMPREPLY=()

    if [ -z "$verb" ]; then
        if [[ $current == -* ]]; then
            _stagewright_words "$current" '--help --version'
        else
            _stagewright_words "$current" "$(_stagewright_verbs "$program")"
        fi
        return
    fi
    case $previous in
    -s | --schedule | --schedules)
        local prefix=''
        [[ $current != *,* ]] || prefix=${current%,*},
        if [[ $current == */* || $current == .* ]]; then
            _stagewright_files "$current" csv block
        else
            mapfile -t COMPREPLY < <(compgen -P "$prefix" -W "$(_stagewright_schedules "$program")" -- "${current##*,}")
            mapfile -t -O ${#COMPREPLY[@]} COMPREPLY < <(compgen -f -X '!*.csv' -- "$current")
        fi
        return
        ;;
    --format) _stagewright_words "$current" "$(_stagewright_choices "$program" export x -o x --format)"; return ;;
    --table) _stagewright_words "$current" "$(_stagewright_choices "$program" report x --table)"; return ;;
    --objective) _stagewright_words "$current" 'makespan span'; return ;;
    --clock) _stagewright_words "$current" 'auto wall virtual'; return ;;
    --host) _stagewright_words "$current" "$(_stagewright_hosts "$program")"; return ;;
    --measure | --across | --up | --device | --gather | --reduce)
        if [ "$verb" = explore ]; then
            _stagewright_words "$current" "$(_stagewright_choices "${COMP_WORDS[@]:0:COMP_CWORD}")"
            return
        fi
        ;;
    --launcher) _stagewright_words "$current" 'mpirun mpiexec srun srun:pmix srun:pmi2 flux flux:pmix jsrun torchrun custom:'; return ;;
    --engine) _stagewright_words "$current" 'own torch torchtitan'; return ;;
    --optimizer) _stagewright_words "$current" 'adamw sgd kfac'; return ;;
    --progress) _stagewright_words "$current" 'auto jsonl none'; return ;;
    --otlp) _stagewright_words "$current" '127.0.0.1:4318 127.0.0.1:0'; return ;;
    --log-level) _stagewright_words "$current" 'error warning info debug'; return ;;
    --sends) _stagewright_words "$current" 'buffered rendezvous'; return ;;
    --receives) _stagewright_words "$current" 'blocking posted'; return ;;
    --lower) _stagewright_words "$current" 'just-in-time pytorch eager-post rank-parity grouped batched'; return ;;
    --dialect) _stagewright_words "$current" 'auto new old'; return ;;
    --costs-from | --merge) _stagewright_files "$current" stagewright; return ;;
    --into) _stagewright_files "$current" stagewright; return ;;
    --rules) compopt -o filenames 2>/dev/null; mapfile -t COMPREPLY < <(compgen -f -- "$current"); return ;;
    --costs) _stagewright_files "$current" json; return ;;
    -o | --output | --svg | --data | --python | --job | --model-file | --container) compopt -o filenames 2>/dev/null; mapfile -t COMPREPLY < <(compgen -f -- "$current"); return ;;
    esac
    if [[ $current == -* ]]; then
        _stagewright_words "$current" "$(_stagewright_options "$program" "$verb")"
        return
    fi
    case $verb in
    hosts)
        case $previous in
        hosts) _stagewright_words "$current" 'add test install list remove jobs attach fetch stop forget' ;;
        test | install | remove) _stagewright_words "$current" "$(_stagewright_hosts "$program")" ;;
        attach | fetch | stop | forget) _stagewright_words "$current" "$(_stagewright_jobs "$program")" ;;
        esac
        ;;
    script)
        [ "$previous" != script ] || _stagewright_words "$current" 'slurm pbs lsf flux torchrun kubernetes'
        ;;
    schedules) _stagewright_words "$current" "$(_stagewright_schedules "$program")" ;;
    explore) _stagewright_words "$current" "$(_stagewright_surveys "$program")" ;;
    import) compopt -o filenames 2>/dev/null; mapfile -t COMPREPLY < <(compgen -f -- "$current") ;;
    validate) _stagewright_files "$current" csv ;;
    diff)
        _stagewright_files "$current" csv
        mapfile -t -O ${#COMPREPLY[@]} COMPREPLY < <(compgen -W "$(_stagewright_schedules "$program")" -- "$current")
        ;;
    runs | report | compare | export | sql | ui)
        local names
        names=$(_stagewright_runs "$program" "${COMP_WORDS[@]:2:COMP_CWORD-2}")
        if [ -n "$names" ]; then
            _stagewright_words "$current" "$names"
        else
            _stagewright_files "$current" stagewright
        fi
        ;;
    esac
}

complete -F _stagewright stagewright
