#include "traces/lessons/lesson.h"

#include <algorithm>

#include "traces/lessons/words.h"

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
    static const std::vector<Tool> all = {{"place", "Place ops"},
                                          {"move", "Drag ops"},
                                          {"split", "Split B"},
                                          {"warmup", "Warm-up"},
                                          {"placement", "Placement"},
                                          {"layers", "Layers"},
                                          {"recompute", "Recompute"},
                                          {"group", "Group messages"},
                                          {"shard", "Replicas"},
                                          {"settings", "Sliders"},
                                          {"text", "Schedule text"},
                                          {"plan", "Plan"},
                                          {"library", "Library"},
                                          {"lag", "Delay W"},
                                          {"microbatches", "Microbatches"},
                                          {"slow", "Slow ranks"},
                                          {"share", "What replicas share"},
                                          {"chunks", "Chunks"},
                                          {"latency", "Latency"},
                                          {"costs", "Costs"},
                                          {"cap", "Cap"}};
    return all;
}

bool allowsTool(const std::vector<std::string>& allowed, std::string_view tool)
{
    const auto has = [&](std::string_view one) {
        return std::find(allowed.begin(), allowed.end(), one) != allowed.end();
    };
    static constexpr std::string_view sliders[] = {"microbatches", "chunks", "latency", "costs", "cap", "slow"};
    return has(tool) || (tool == "lag" && has("move")) || (tool == "share" && has("shard")) ||
           (has("settings") && std::find(std::begin(sliders), std::end(sliders), tool) != std::end(sliders));
}

std::vector<std::string> buttonsOf(const std::string& id, std::vector<std::string> choices)
{
    const auto number = [](const std::string& choice) {
        const auto at = choice.find_first_of("0123456789");
        return at == std::string::npos ? std::optional<double>() : numberOf(choice.substr(at));
    };
    bool counts = true; // upwards
    for (std::size_t i = 0; i < choices.size(); ++i)
        counts = counts && number(choices[i]) && (i == 0 || *number(choices[i - 1]) < *number(choices[i]));
    if (counts) return choices;
    std::uint64_t mixed = 14695981039346656037U; // FNV-1a: the same everywhere
    const auto mix = [&](std::string_view text) {
        for (const char one : text) mixed = (mixed ^ static_cast<unsigned char>(one)) * 1099511628211U;
    };
    mix(id);
    for (std::size_t left = choices.size(); left > 1; --left) {
        mix("/");
        std::swap(choices[left - 1], choices[(mixed >> 33U) % left]);
    }
    return choices;
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
