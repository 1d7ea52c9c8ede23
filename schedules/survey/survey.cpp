#include "schedules/survey/survey.h"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "schedules/base/text.h"

namespace stagewright {

namespace surveys {
#define STAGEWRIGHT_SURVEY(name) extern const SurveyInfo name;
#include "schedules/survey/surveys.def"
#undef STAGEWRIGHT_SURVEY
} // namespace surveys

namespace {

constexpr const SurveyInfo* everySurvey[] = {
#define STAGEWRIGHT_SURVEY(name) &surveys::name,
#include "schedules/survey/surveys.def"
#undef STAGEWRIGHT_SURVEY
};

} // namespace

std::span<const SurveyInfo* const> allSurveys() { return everySurvey; }

Result<const SurveyInfo*> findSurvey(std::string_view name)
{
    std::vector<std::string> names;
    for (const SurveyInfo* survey : allSurveys()) {
        if (survey->name == name) return survey;
        names.emplace_back(survey->name);
    }
    const std::string near = nearestName(name, names);
    return fail(ErrorCode::Usage, fmt::format("there is no survey '{}'", name),
                near.empty() ? fmt::format("surveys are {}", listed(names)) : fmt::format("did you mean '{}'?", near));
}

std::string faultOf(const SurveyField& field, std::string_view text)
{
    const auto out = [text](const std::string& taken) { return fmt::format("takes {}, not '{}'", taken, text); };
    std::vector<std::string> words;
    switch (field.kind) {
    case FieldKind::Text: return {};
    case FieldKind::Whole:
    case FieldKind::Real: {
        if (!field.none.empty() && text == field.none) return {};
        const auto value = numberOf(text);
        const bool whole = field.kind == FieldKind::Whole;
        if (value && *value >= field.least && *value <= field.most && (!whole || *value == std::floor(*value)))
            return {};
        return out(fmt::format("{} from {} to {}", whole ? "a whole number" : "a number", field.least, field.most));
    }
    case FieldKind::Switch: words = {"yes", "no"}; break;
    case FieldKind::Choice:
        for (const FieldChoice& choice : field.choices) words.push_back(choice.value);
    }
    if (std::find(words.begin(), words.end(), text) != words.end()) return {};
    return out(fmt::format("one of {}", listed(words)));
}

std::string textOf(double value) { return fmt::format("{:.10g}", value); }

Result<SurveyQuestion> SurveyQuestion::read(const SurveyInfo& survey, const SurveyValues& given)
{
    SurveyQuestion out;
    std::vector<std::string> names;
    for (const SurveyField& field : survey.fields()) {
        names.push_back(field.name);
        const auto at = given.find(field.name);
        std::string text(at == given.end() ? std::string_view(field.fallback) : trimmed(at->second));
        if (at != given.end())
            if (const std::string fault = faultOf(field, text); !fault.empty())
                return fail(ErrorCode::Usage, fmt::format("{} {}", field.name, fault));
        if (field.kind != FieldKind::Text && text == field.none) text = "0";
        out.m_values[field.name] = std::move(text);
    }
    for (const auto& [name, text] : given)
        if (!out.m_values.contains(name))
            return fail(ErrorCode::Usage, fmt::format("{} is not a field of '{}'", name, survey.name),
                        fmt::format("its fields are {}", listed(names)));
    return out;
}

const std::string& SurveyQuestion::text(std::string_view field) const { return m_values.find(field)->second; }
double SurveyQuestion::real(std::string_view field) const { return numberOf(text(field)).value_or(0); }
int SurveyQuestion::whole(std::string_view field) const { return static_cast<int>(real(field)); }

} // namespace stagewright
