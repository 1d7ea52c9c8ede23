#!/usr/bin/env bash
# Texts of the window go through tr(): a literal of several words in QStringLiteral and the like is one that no translator
# sees. A string that is not for people (a typeface, a query) says so in a comment "untranslated: …".
set -u
root=$1
status=0
found=0
while IFS=: read -r file count; do
    [ "$count" -eq 0 ] && continue
    name=${file#"$root"/}
    echo "$name: $count literals of several words outside of tr():"
    grep -nE 'QString(Literal|::fromUtf8|::fromLatin1)\("[^"]*[A-Za-z]{2,}[^"]* [^"]*[a-z]{2,}[^"]*"\)' "$file" |
        grep -vE 'tr\(|translate\(|QRegularExpression|StyleSheet|font-family|untranslated: ' | sed 's/^/    /'
    status=1
    found=$((found + count))
done < <(find "$root/widgets" "$root/app/ui" \( -name '*.cpp' -o -name '*.h' \) ! -path "*/program/*" | sort |
    while read -r file; do
        printf '%s:%s\n' "$file" "$(grep -E 'QString(Literal|::fromUtf8|::fromLatin1)\("[^"]*[A-Za-z]{2,}[^"]* [^"]*[a-z]{2,}[^"]*"\)' "$file" |
            grep -cvE 'tr\(|translate\(|QRegularExpression|StyleSheet|font-family|untranslated: ')"
    done)
# A text in a table of actions may be one word.
if grep -rnE '\.(text|button|tooltip|missing) = ("|QString)' "$root/app/ui"; then
    echo "texts of actions outside of tr()"
    status=1
fi
echo "$found literals of several words outside of tr()"
exit $status
