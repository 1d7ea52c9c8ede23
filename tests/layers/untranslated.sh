#!/usr/bin/env bash
# Texts of the window go through tr(): a literal of several words in QStringLiteral and the like is one that no translator
# sees. untranslated.txt tells how many a file may still have; a file may have fewer, never more.
set -u
root=$1
known=$root/tests/layers/untranslated.txt
status=0
found=0
while IFS=: read -r file count; do
    [ "$count" -eq 0 ] && continue
    name=${file#"$root"/}
    allowed=$(awk -v f="$name" '$1 == f { print $2 }' "$known")
    if [ "$count" -gt "${allowed:-0}" ]; then
        echo "$name: $count literals of several words outside of tr(), ${allowed:-0} are known:"
        grep -nE 'QString(Literal|::fromUtf8|::fromLatin1)\("[^"]*[A-Za-z]{2,}[^"]* [^"]*[a-z]{2,}[^"]*"\)' "$file" |
            grep -vE 'tr\(|translate\(|QRegularExpression|StyleSheet|font-family|untranslated: ' | sed 's/^/    /'
        status=1
    fi
    found=$((found + count))
done < <(find "$root/widgets" "$root/app/ui" \( -name '*.cpp' -o -name '*.h' \) ! -name command_line.cpp ! -name main.cpp | sort |
    while read -r file; do
        printf '%s:%s\n' "$file" "$(grep -E 'QString(Literal|::fromUtf8|::fromLatin1)\("[^"]*[A-Za-z]{2,}[^"]* [^"]*[a-z]{2,}[^"]*"\)' "$file" |
            grep -cvE 'tr\(|translate\(|QRegularExpression|StyleSheet|font-family|untranslated: ')"
    done)
echo "$found literals of several words outside of tr()"
exit $status
