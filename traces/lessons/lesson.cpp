#include "traces/lessons/lesson.h"

#include <algorithm>

namespace stagewright::lessons {

namespace {

template <typename Kind, typename Matches>
const Kind* firstOf(const Lesson& lesson, const Matches& matches)
{
    for (const Kind* one : lesson.all<Kind>())
        if (matches(*one)) return one;
    return nullptr;
}

} // namespace

const Step* Lesson::step(int index) const
{
    const auto steps = all<Step>();
    return index >= 0 && static_cast<std::size_t>(index) < steps.size() ? steps[static_cast<std::size_t>(index)]
                                                                        : nullptr;
}

const Check* Lesson::check(const std::string& checkId) const
{
    return firstOf<Check>(*this, [&](const Check& one) { return one.id == checkId; });
}

const Quiz* Lesson::quiz(const std::string& quizId) const
{
    return firstOf<Quiz>(*this, [&](const Quiz& one) { return one.id == quizId; });
}

const Solution* Lesson::solutionOf(const std::string& checkId) const
{
    return firstOf<Solution>(*this, [&](const Solution& one) { return one.check == checkId; });
}

std::vector<const Hints::Hint*> Lesson::hintsOf(const std::string& checkId) const
{
    std::vector<const Hints::Hint*> found;
    for (const Hints* hints : all<Hints>())
        if (hints->of == checkId)
            for (const Hints::Hint& hint : hints->hints) found.push_back(&hint);
    return found;
}

const std::vector<Tool>& tools()
{
    static const std::vector<Tool> all = {
        {"place", "Place ops"},     {"move", "Drag ops"},    {"split", "Split B"},       {"warmup", "Warm-up"},
        {"placement", "Placement"}, {"layers", "Layers"},    {"recompute", "Recompute"}, {"group", "Group messages"},
        {"shard", "Replicas"},      {"settings", "Sliders"}, {"text", "Schedule text"},  {"plan", "Plan"},
        {"library", "Library"}};
    return all;
}

std::string_view toText(Part part)
{
    switch (part) {
    case Part::Question: return "Question";
    case Part::Guess: return "Guess";
    case Part::Do: return "Do";
    case Part::Prove: return "Prove";
    case Part::Keep: return "Keep";
    }
    return "";
}

std::string RunBlock::valueOf(std::string_view option) const
{
    const auto at = std::find(arguments.begin(), arguments.end(), option);
    return at == arguments.end() || at + 1 == arguments.end() ? std::string() : *(at + 1);
}

} // namespace stagewright::lessons
