// The lesson reader on any bytes: it may refuse, with a place, never crash; expressions terminate whatever they
// contain, edits answer.
#include <cstdint>
#include <string>
#include <string_view>

#include "require.h"
#include "traces/lessons/edit_command.h"
#include "traces/lessons/expression.h"
#include "traces/lessons/glossary.h"
#include "traces/lessons/lesson_file.h"

using namespace stagewright;
using namespace stagewright::lessons;

namespace {

class Anything : public Scope {
public:
    Result<Value> name(std::string_view name) const override
    {
        switch (name.size() % 4) {
        case 0: return Value();
        case 1: return Value(static_cast<double>(name.front()));
        case 2: return Value(List{Value(1), Value(2), Value(3), Value(4)});
        default: return fail(ErrorCode::Usage, "unknown");
        }
    }
    Result<Value> call(std::string_view, const std::vector<Argument>& arguments) const override
    {
        if (arguments.empty()) return Value("nothing");
        return arguments.front().value;
    }
};

void evaluate(const Expression& expression)
{
    const auto value = expression.evaluate(Anything());
    if (!value)
        require(!value.error().message.empty());
    else
        (void)toText(*value);
    for (const Expression& part : expression.conjuncts()) {
        const auto comparison = part.comparison();
        (void)comparison.left.evaluate(Anything());
    }
    (void)expression.names();
}

void evaluate(const Text& text)
{
    for (const Text::Piece& piece : text.pieces)
        if (!piece.expression.empty()) evaluate(piece.expression);
}

} // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size)
{
    const std::string_view text(reinterpret_cast<const char*>(data), size);
    if (const auto expression = Expression::parse(text.substr(0, 400)))
        evaluate(*expression);
    else
        require(!expression.error().message.empty());
    (void)readGlossary(text);
    Settings small;
    small.ranks = 2;
    small.microbatches = 2;
    const Canvas canvas{emptySchedule(small), small};
    if (const auto edits = parseEdits(text.substr(0, 200)))
        for (const EditCommand& edit : *edits)
            // those may ask for large shapes
            if (edit.verb != "set" && edit.verb != "load") (void)applyEdit(edit, canvas);

    const auto lesson = readLesson(text, "fuzz.md");
    if (!lesson) {
        require(lesson.error().message.starts_with("fuzz.md:"));
        return 0;
    }
    for (const Check* check : lesson->all<Check>()) {
        evaluate(check->goal);
        for (const Remark& remark : check->fails) evaluate(remark.text);
    }
    for (const Prose* prose : lesson->all<Prose>()) evaluate(prose->text);
    for (const Step* step : lesson->all<Step>()) require(withSettings({}, changesOf(step->settings)).has_value());
    return 0;
}
