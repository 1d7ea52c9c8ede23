#!/usr/bin/env bash
# A function is declared in the header of its own file: X.cpp's in X.h, or, where X_part.cpp is a part of X, in X.h.
# Those that a .def file lists, and those that no header declares, need none.
set -u
root=$1
cd "$root" || exit 2
exec perl - <<'SCRIPT'
use strict;
use warnings;
my @files = sort split /\n/, `find schedules profiler engine traces widgets app -name '*.h' -o -name '*.cpp'`;
my (%text, %declared, @found);
for my $file (@files) {
    local $/;
    open my $in, '<', $file or die "$file: $!";
    $text{$file} = <$in>;
}
my $word = qr/(?!return|else|using|namespace|class|struct|typedef|case|delete|new|if|for|while|static|extern|enum|template)[A-Za-z_][\w:<>,&* ]*?[ &*>]/;
my $head = qr/^(?:(?:inline|constexpr|\[\[nodiscard\]\]) )*$word([a-z]\w*)\(/m;
for my $file (grep /\.h$/, @files) {
    $declared{$1}{$file} = 1 while $text{$file} =~ /$head[^{}]*?;/gm;
}
for my $file (grep /\.cpp$/, @files) {
    (my $stem = $file) =~ s/\.cpp$//;
    my $open = $text{$file};
    $open =~ s/^namespace \{.*?^\} \/\/ namespace$//msg; # seen by this file alone
    while ($open =~ /$head[^;{}]*?\)(?: noexcept)?\s*\{/gm) {
        my $name = $1;
        my @places = sort keys %{$declared{$name} // {}};
        next unless @places;
        next if exists $text{"$stem.h"} && $text{"$stem.h"} =~ /\b$name\(/;
        next if grep { (my $other = $_) =~ s/\.h$//; index("$stem", $other) == 0 || index($other, $stem) == 0 } @places;
        push @found, "  $name of $file: declared in @places[0 .. ($#places > 1 ? 1 : $#places)]";
    }
}
die "no header read\n" unless %declared;
print "declared in another file's header:\n", map("$_\n", @found) if @found;
exit(@found ? 1 : 0);
SCRIPT
