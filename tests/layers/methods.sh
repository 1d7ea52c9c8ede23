#!/usr/bin/env bash
# A class declares at most 45 methods: one with more knows several things, which are better classes of their own. Signals, overrides,
# overloads and constructors count; what a class within it declares counts for that one. The classes listed below have more; their
# numbers only fall, and so does the list.
set -u
root=$1
cd "$root" || exit 2
exec perl - <<'SCRIPT'
use strict;
use warnings;
my $most = 45;
my %more = (
    'app/ui/lessons/lesson_controller.h: LessonController' => 48,
    'app/ui/runs/run_library.h: RunLibrary' => 58,
    'app/ui/workspace/shown.h: Shown' => 56,
    'engine/cuda/device_math.cpp: DeviceMath' => 53,
    'widgets/explore/explore_view.h: ExploreView' => 53,
);
my (%count, %place);
my @files = sort split /\n/, `find schedules profiler engine traces widgets app -name '*.h' -o -name '*.cpp' -o -name '*.cuh' -o -name '*.cu'`;
for my $file (@files) {
    local $/;
    open my $in, '<', $file or die "$file: $!";
    my $text = <$in>;
    $text =~ s{//[^\n]*}{}g;
    $text =~ s{/\*.*?\*/}{}gs;
    $text =~ s{R"(\w*)\(.*?\)\1"}{""}gs;
    $text =~ s{"(?:\\.|[^"\\\n])*"}{""}g;
    $text =~ s{'(?:\\.|[^'\\\n])'}{' '}g;
    $text =~ s{^[ \t]*#(?:\\\n|[^\n])*}{}gm;
    # By brackets: a class's statements are those directly within its braces.
    my @stack; # of each open brace: the class it opens, or ''
    my $head = '';
    my $depth = 0; # of parentheses
    while ($text =~ /([(){};]|[^(){};]+)/g) {
        my $token = $1;
        if ($token eq '(') { ++$depth; $head .= $token; next; }
        if ($token eq ')') { --$depth; $head .= $token; next; }
        if ($depth > 0) { $head .= $token unless $token =~ /[{};]/; next; }
        if ($token eq '{' || $token eq ';') {
            my $within = @stack ? $stack[-1] : '';
            (my $said = $head) =~ s/^(?:\s*(?:public|protected|private|signals|Q_OBJECT|Q_GADGET|(?:public|private|protected) slots)\b\s*:?(?!:))+//;
            my $opens = $said =~ /^\s*(?:template\s*<[^;{}]*>\s*)?(?:class|struct)\s+(?:alignas\([^)]*\)\s*)?(\w+)[^()=]*$/ ? $1 : '';
            if ($within ne '' && !($token eq '{' && $opens ne '') && $said !~ /^\s*(?:using|friend|typedef|enum|static_assert|Q_\w+)\b/) {
                my $plain = $said;
                1 while $plain =~ s/<[^<>()]*>//g;
                if ($plain =~ /^[^=]*?(?:[\w~]|operator\s*\S{1,3})\s*\(/ && $plain !~ /^[^(=]*=[^(]*\(/) {
                    ++$count{"$file: $within"};
                }
            }
            push @stack, $opens if $token eq '{';
            $head = '';
            next;
        }
        if ($token eq '}') { pop @stack; $head = ''; next; }
        $head .= $token;
    }
}
die "no class read\n" unless %count;
my $status = 0;
for my $class (sort keys %{{%count, %more}}) {
    my ($has, $may) = ($count{$class} // 0, $more{$class} // $most);
    if ($has > $may) {
        print "$class declares $has methods, at most $may: make what it knows beside its purpose a class of its own\n";
        $status = 1;
    } elsif (exists $more{$class} && $has < $may) {
        print "$class declares $has methods: lower its number in tests/layers/methods.sh", $has <= $most ? ", or take it off the list\n" : "\n";
        $status = 1;
    }
}
print scalar(keys %count), " classes\n" unless $status;
exit $status;
SCRIPT
