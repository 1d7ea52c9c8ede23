#!/usr/bin/env bash
# Texts of the window go through tr(): a literal of several words in QStringLiteral and the like is one that no translator
# sees. A string that is not for people (a typeface, a query) says so in a comment "untranslated: …" on
# its line or the one before.
set -u
root=$1
status=0
found=0
literal='QString(Literal|::fromUtf8|::fromLatin1)\\("[^"]*[A-Za-z][A-Za-z][^"]* [^"]*[a-z][a-z][^"]*"\\)'
other='tr\\(|translate\\(|QRegularExpression|StyleSheet|font-family|untranslated: '
while IFS= read -r file; do
    lines=$(awk -v literal="$literal" -v other="$other" \
        '# a statement may begin on the line before
         $0 ~ literal && $0 !~ other && before !~ /untranslated: / && !(before ~ other && before !~ /[;{}]$/) {
             print "    " NR ":" $0 } { before = $0 }' "$file")
    [ -z "$lines" ] && continue
    echo "${file#"$root"/}: literals of several words outside of tr():"
    printf '%s\n' "$lines"
    status=1
    found=$((found + $(wc -l <<<"$lines")))
done < <(find "$root/widgets" "$root/app/ui" \( -name '*.cpp' -o -name '*.h' \) ! -path "*/program/*" | sort)
# A text in a table of actions may be one word.
if grep -rnE '\.(text|button|tooltip|missing) = ("|QString)' "$root/app/ui"; then
    echo "texts of actions outside of tr()"
    status=1
fi
echo "$found literals of several words outside of tr()"
exit $status
