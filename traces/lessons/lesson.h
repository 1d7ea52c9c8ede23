// Lesson: one Markdown file as a value. Front matter, then prose and typed blocks under the headings Guess, Do, Prove
// and Keep. docs/lessons/README.md describes the file; traces/lessons/lesson_file.h reads it.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "traces/lessons/edit_command.h"
#include "traces/lessons/expression.h"
#include "traces/lessons/settings.h"

namespace stagewright::lessons {

struct FilePlace { // both from 1; 0: none
    int line = 0;
    int column = 0;
};

// Words with {{expressions}} between them.
struct Text {
    struct Piece {
        std::string words;     // Markdown, where `value` is empty
        Expression expression; // else its value is inserted here
        FilePlace at;
    };
    std::vector<Piece> pieces;
    std::string source; // as written, without the line breaks of a paragraph
    bool empty() const { return pieces.empty(); }
};

struct Prose { // one paragraph, list or heading of Markdown
    Text text;
    FilePlace at;
};

// Before doing: a guess, kept and shown later, never graded.
struct Predict {
    std::string id;
    Text ask;
    std::vector<std::string> choices; // empty: a number (or a list of numbers)
    std::string unit;                 // of a number; "mark": a place on a plot
    Expression truth;
    Text reveal; // shown afterwards; may be empty
    FilePlace at;
};

// The canvas from here on, and the available tools.
struct Step {
    std::string id;                 // "step-1" if none is given
    std::string show = "empty";     // library name, "empty", or the id of a check whose answer is used
    std::vector<EditCommand> edits; // applied to it
    std::string compare;            // a second schedule above; "": none
    std::vector<std::string> allow; // tools: lessons::tools()
    Settings settings;              // the lesson's settings with the step's changes
    std::string expectInvalid;      // the op of its first fault, if the canvas starts invalid on purpose
    std::string view;               // "lowered", "memory", "plan" …: what else the window opens; optional
    Expression targets;             // activation peaks to draw as lines, by rank
    Expression axis;                // units that the time axis shows from the start; empty: as long as the canvas
    std::vector<std::string> watch; // figures of the canvas that the panel shows beside the tools
    std::vector<std::string> needs; // features without which the step is skipped
    FilePlace at;
};

// "fail:" and "grade:" lines: the text shown if the condition holds; an empty condition is the catch-all
struct Remark {
    Expression condition;
    Text text;
    FilePlace at;
};

// A goal on the schedule (and settings) of its step.
struct Check {
    std::string id;
    Expression goal;
    Text say;
    Text pass;
    std::vector<Remark> fails;
    // best last: "grade: makespan <= 33 -> silver"
    std::vector<Remark> grades;
    // the schedule the lesson teaches; "": the solution's
    std::string par;
    Text formula;                                                             // beside the picture; may be empty
    std::vector<std::pair<int, int>> generaliseRanks, generaliseMicrobatches; // one range each, or none
    bool graded = true;                                                       // false: reported only
    std::optional<std::vector<std::string>> with; // the tools shown for it; none: all that its step allows
    std::vector<std::string> needs;
    int step = -1; // index into Lesson::steps
    FilePlace at;
};

// A question with a right answer.
struct Quiz {
    std::string id;
    Text ask;
    std::vector<std::string> choices; // empty: a number, or a list of numbers
    Expression truth;
    double within = 0; // numbers: the tolerance
    Text pass;
    std::vector<Remark> fails;
    std::vector<std::string> with; // the tools that it takes; empty: it is answered from the canvas
    std::vector<std::string> needs;
    int step = -1;
    FilePlace at;
};

struct Hints { // of the check or quiz `of`: point, principle, move
    std::string of;
    struct Hint {
        Text text;
        std::vector<EditCommand> edits; // only in the third
    };
    std::vector<Hint> hints;
    FilePlace at;
};

// A real run on the learner's computer.
struct RunBlock {
    std::string id;
    std::string title;                                  // of its card; empty: from the id
    std::vector<std::string> arguments;                 // of `stagewright record`, without -o
    std::string valueOf(std::string_view option) const; // among the arguments; "": not given
    std::vector<EditCommand> edits;                     // applied to its schedules before
    std::string look;                                   // where to look
    std::vector<std::pair<Expression, Text>> goals;     // with the text shown for them; may be empty
    double fit = 0;                                     // relative tolerance of the fitted model; 0: not checked
    bool expectFailure = false; // the run should be refused or hang: run(id).hung, run(id).refused
    bool wallClock = false;     // skipped unless cores are idle
    std::vector<std::string> needs;
    int step = -1;
    FilePlace at;
};

struct Figure {
    std::string file;
    std::string of; // lessons::figureOf reads it
    Text caption;
    int step = -1;
    FilePlace at;
};

// An answer: for the validator, and for "Show the solution".
struct GivenAnswer {
    std::string check;                                     // its check or quiz
    std::string schedule;                                  // library name; "": the step's canvas
    std::string rows;                                      // orders, ranks separated by '/'; "": none
    std::vector<EditCommand> edits;                        // applied to it, settings too
    std::vector<std::pair<std::string, std::string>> said; // answers to questions, by id
    std::string says;                                      // Wrong: part of the message it gets
    FilePlace at;
};
struct Solution : GivenAnswer {};
struct Wrong : GivenAnswer {};

// A fact the prose relies on, for the validator: it must hold on the step's initial canvas. Not shown.
struct Fact {
    std::vector<std::pair<Expression, FilePlace>> that;
    int step = -1;
    FilePlace at;
};

using Block = std::variant<Prose, Predict, Step, Check, Quiz, Hints, RunBlock, Figure, Solution, Wrong, Fact>;

enum class Part : std::uint8_t {
    Question,
    Guess,
    Do,
    Prove,
    Keep,
}; // Question: before the first heading

struct Section {
    Part part = Part::Question;
    std::string title; // "Do"
    std::vector<Block> blocks;
    FilePlace at;
};

struct Lesson {
    std::string id;    // "latency"
    int number = 0;    // from the file's name, 0: none
    std::string title; // the question
    std::vector<std::string> after;
    int minutes = 0;
    std::vector<std::string> uses;  // schedules
    std::vector<std::string> needs; // features without which the lesson is skipped
    std::string shelf; // "Basics", "Schedules", "Real world", "Mastery", "Shared state"; "": a teacher's own
    Settings settings;
    std::vector<Section> sections;

    std::string course;     // title of its course (course.h); "": none
    int place = 0;          // in the course, from 1
    std::string file;       // the file it was read from
    std::uint64_t hash = 0; // of its text
    std::string source;     // its text

    // Blocks of one kind in file order; pointers into sections.
    template <typename Kind>
    std::vector<const Kind*> all() const
    {
        std::vector<const Kind*> found;
        for (const Section& section : sections)
            for (const Block& block : section.blocks)
                if (const Kind* one = std::get_if<Kind>(&block)) found.push_back(one);
        return found;
    }
    const Step* step(int index) const; // in file order; null if there is none
    const Check* check(const std::string& checkId) const;
    const Quiz* quiz(const std::string& quizId) const;
    const Solution* solutionOf(const std::string& checkId) const;
    std::vector<const Hints::Hint*> hintsOf(const std::string& checkId) const;
};

// The tools a step may allow, with their titles: place move split warmup lag placement layers recompute group shard
// settings text plan library, of settings each alone: microbatches chunks latency costs cap slow, and of shard: share.
struct Tool {
    std::string_view name;
    std::string_view title;
};
const std::vector<Tool>& tools();
// Whether a tool is among those allowed: "settings" has every slider, "move" what "lag" does.
bool allowsTool(const std::vector<std::string>& allowed, std::string_view tool);
// The choices of a question in the order of its buttons: shuffled by its id, so that their order in the file says
// nothing; choices that count up, "rank 0 | rank 2 | rank 3", stay.
std::vector<std::string> buttonsOf(const std::string& id, std::vector<std::string> choices);

std::string_view toText(Part part); // "Guess"

} // namespace stagewright::lessons
