// Surveys: questions about many schedules at once, such as memory against time of the whole library. One file each, one
// line each in surveys.def. `stagewright explore NAME` prints what a survey answers, and the window's explorer shows it:
// both take fields, defaults, ranges and faults from here.
#pragma once

#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "schedules/base/plot.h"
#include "schedules/base/progress.h"
#include "schedules/base/result.h"
#include "schedules/base/table.h"

namespace stagewright {

enum class FieldKind : std::uint8_t {
    Whole,
    Real,
    Choice, // one of the choices
    Text,   // a list, which the survey reads
    Switch, // "yes" or "no"
};
struct FieldChoice {
    std::string value; // "overlapped"
    std::string title; // "stage by stage"
};
// One field of a question. Fields of the same name mean the same in all surveys.
struct SurveyField {
    std::string name;  // "ranks": the option --ranks and the key in JSON
    std::string title; // "Ranks, p"
    std::string help;  // sentences
    FieldKind kind = FieldKind::Whole;
    std::string fallback = {}; // what holds where nothing is given; may be empty
    double least = 0;          // of numbers
    double most = 0;           // likewise
    double step = 1;           // of sliders
    double slide = 0;          // where a slider ends; 0: at `most`
    std::string unit = {};     // "GB"; may be empty
    std::string none = {};     // what 0 or an empty text means: "the device's"
    std::vector<FieldChoice> choices = {};
    bool doubling = false; // a slider goes over the powers of two
    bool alone = false;    // a value counts instead of all other fields
};
// What is wrong with a value, as the end of a sentence: "takes a whole number from 2 to 1024, not 'x'"; "": nothing.
std::string faultOf(const SurveyField& field, std::string_view text);
std::string textOf(double value); // "8", "0.25": of a number as a field's value

using SurveyValues = std::map<std::string, std::string, std::less<>>; // by name of the field

struct SurveyInfo;

// The values of all fields of a survey, each in its range.
class SurveyQuestion {
public:
    // Fields that are not given have their defaults. Usage: an unknown name, a value out of its range; the
    // message starts with the field's name.
    static Result<SurveyQuestion> read(const SurveyInfo& survey, const SurveyValues& given);

    const SurveyValues& values() const { return m_values; }
    // The answer in a field that the survey has.
    const std::string& text(std::string_view field) const;
    double real(std::string_view field) const;
    int whole(std::string_view field) const;
    bool on(std::string_view field) const { return text(field) == "yes"; }

private:
    SurveyValues m_values;
};

struct SurveyTable {
    std::string name;  // in JSON: "schedules"
    std::string title; // "Schedules by activation peak and step time"
    std::vector<TableColumn> columns;
    std::vector<TableRow> rows;
    std::string sentence = {}; // what it comes to; may be empty
};

struct SurveyAnswer {
    std::string setup;               // what was asked, in a sentence: "Simulated with unit costs: p=8, m=32, …."
    std::vector<SurveyTable> tables; // the first is the answer itself
    Units units;                     // of times and sizes in them
    Plot plot;
    bool complete = true; // false: stopped; the tables have what was done before
};

struct SurveyInfo {
    std::string_view name;    // "memory"
    std::string_view title;   // "Memory against time"
    std::string_view summary; // one line
    std::vector<SurveyField> (*fields)();
    // A pure function for any thread: the same question has the same answer. What can't be simulated is in the tables
    // with its reason; Usage where nothing can be answered.
    Result<SurveyAnswer> (*answer)(const SurveyQuestion& question, const Progress& progress);
};

std::span<const SurveyInfo* const> allSurveys();             // in the order of surveys.def
Result<const SurveyInfo*> findSurvey(std::string_view name); // an unknown name's error lists the others

} // namespace stagewright
