#include "app/cli/text/lesson_text.h"

#include <algorithm>
#include <sstream>

#include <fmt/format.h>

#include "app/cli/text/json.h"
#include "app/cli/text/table.h"
#include "schedules/base/op_number.h"
#include "schedules/base/text.h"
#include "schedules/text/draw_text.h"

namespace stagewright {

using namespace lessons;
namespace {

// Paragraphs folded at the width; tables, lists and code stay as they are.
std::string folded(const std::string& text, int columns, const std::string& indent)
{
    if (text.starts_with("```")) {
        std::string out;
        std::istringstream in(text);
        for (std::string line; std::getline(in, line);)
            if (!line.starts_with("```")) out.append(indent).append("    ").append(line).append("\n");
        return out;
    }
    if (text.starts_with("|")) {
        std::string out;
        std::istringstream in(text);
        for (std::string line; std::getline(in, line);)
            if (!line.starts_with("|--")) out += indent + line + "\n";
        return out;
    }
    std::string out;
    std::istringstream lines(text);
    std::string line;
    std::size_t width = 0;
    const auto limit = static_cast<std::size_t>(std::clamp(columns, 40, 100));
    while (std::getline(lines, line)) {
        if (line.starts_with("- ") || line.starts_with("#")) {
            if (width > 0) out += "\n";
            width = 0;
        }
        std::istringstream words(line);
        for (std::string word; words >> word;) {
            const std::size_t size = displayWidth(word);
            if (width > 0 && width + 1 + size > limit) {
                out += "\n";
                width = 0;
            }
            out += width == 0 ? indent : " ";
            width += width == 0 ? displayWidth(indent) + size : size + 1;
            out += word;
        }
    }
    return width > 0 ? out + "\n" : out;
}

class LessonPrinter {
public:
    LessonPrinter(const Lesson& lesson, const LessonTextOptions& options) : m_lesson(lesson), m_options(options) {}

    std::string text()
    {
        m_out = tinted(m_lesson.number > 0 ? fmt::format("{}. {}", m_lesson.number, m_lesson.title) : m_lesson.title,
                       Tint::Bold, m_options.colour) +
                "\n";
        std::string facts;
        if (m_lesson.minutes > 0) facts += fmt::format("about {} minutes", m_lesson.minutes);
        for (const std::string& one : m_lesson.after)
            facts += fmt::format("{}after {}", facts.empty() ? "" : "; ", one);
        if (!facts.empty()) m_out += tinted(facts, Tint::Dim, m_options.colour) + "\n";
        if (const auto missing = missingNeeds(m_lesson.needs); !missing.empty())
            m_out += tinted(fmt::format("needs {}, which this program does not have", missing.front()), Tint::Warn,
                            m_options.colour) +
                     "\n";
        moveTo(0);
        int step = -1;
        for (const Section& section : m_lesson.sections) {
            if (section.part != Part::Question)
                m_out += "\n" + tinted(section.title, Tint::Bold, m_options.colour) + "\n";
            for (const Block& block : section.blocks) {
                if (const auto* one = std::get_if<Step>(&block)) {
                    moveTo(++step);
                    stepText(*one);
                }
                std::visit([&](const auto& one) { print(one); }, block);
            }
        }
        return m_out;
    }

private:
    void moveTo(int index)
    {
        m_state.reset();
        const Step* step = m_lesson.step(index);
        if (!step || !missingNeeds(step->needs).empty()) return;
        if (auto canvas = startOf(m_lesson, *step))
            m_state = std::make_unique<StepState>(m_lesson, *step, std::move(*canvas));
    }
    std::string said(const Text& text, const Check* within = nullptr) const
    {
        return m_state ? m_state->say(text, within) : text.source;
    }
    void paragraph(const std::string& text, const std::string& indent = "")
    {
        if (!text.empty()) m_out += "\n" + folded(text, m_options.columns, indent);
    }

    void stepText(const Step& step)
    {
        if (const auto missing = missingNeeds(step.needs); !missing.empty()) {
            m_out += fmt::format("\n[step {}: needs {}]\n", step.id, missing.front());
            return;
        }
        if (!m_state) return;
        const auto report = m_state->report();
        if (!report) return;
        m_out += "\n" +
                 tinted(fmt::format("canvas '{}': {}", step.id, changesOf(m_state->canvas().settings)), Tint::Dim,
                        m_options.colour) +
                 "\n";
        if (const auto timeline = report->timeline(); timeline && !timeline->empty())
            m_out += drawTimeline(*timeline, 0, m_options.columns, m_options.colour);
        else if (!report->validation().valid() && report->complete())
            m_out += report->validation().faults.front().message + "\n";
        const auto tray = trayOf(m_state->canvas().schedule);
        std::string ops;
        for (const auto& rank : tray)
            for (const Op& op : rank) ops += " " + stagewright::toText(op);
        if (!ops.empty()) m_out += "in the tray:" + ops + "\n";
        std::string peaks;
        for (const double peak : report->peaks()) peaks += fmt::format("{}{:.4g}", peaks.empty() ? "" : " ", peak);
        if (const auto makespan = report->makespan()) m_out += fmt::format("step {:.4g}, peaks {}\n", *makespan, peaks);
        if (const auto over = m_state->capFault())
            m_out += fmt::format("rank {}, op {} ({}): it would hold {:.4g}, the cap is {:.4g}\n", over->rank,
                                 opNumber(over->position), stagewright::toText(over->op), over->held,
                                 *m_state->canvas().settings.cap());
    }

    void print(const Prose& prose) { paragraph(said(prose.text)); }
    void print(const Step&) {}
    void print(const Predict& predict)
    {
        paragraph(fmt::format("Guess {}: {}", predict.id, said(predict.ask)), "  ");
        choices(predict.choices);
        if (m_options.solutions) paragraph(said(predict.reveal), "    ");
    }
    void print(const Check& check)
    {
        if (!missingFor(m_lesson, check).empty()) return;
        paragraph(fmt::format("Goal {}: {}", check.id, said(check.say, &check)), "  ");
        if (!check.formula.empty()) paragraph(said(check.formula, &check), "    ");
        extras(check.id);
    }
    void print(const Quiz& quiz)
    {
        if (!missingFor(m_lesson, quiz).empty()) return; // the step has said what is missing
        paragraph(fmt::format("Question {}: {}", quiz.id, said(quiz.ask)), "  ");
        choices(quiz.choices);
        extras(quiz.id);
    }
    void print(const Hints&) {}
    void print(const RunBlock& run)
    {
        if (const auto missing = missingNeeds(run.needs); !missing.empty()) {
            m_out += fmt::format("\n[run {}: needs {}]\n", run.id, missing.front());
            return;
        }
        std::string words;
        for (const std::string& word : run.arguments) words += " " + word;
        paragraph(fmt::format("Run {}: stagewright lesson {} --record, or by hand: stagewright record{}", run.id,
                              m_lesson.id, words),
                  "  ");
        for (const auto& [goal, text] : run.goals) paragraph(fmt::format("- {}", goal.text()), "    ");
    }
    void print(const Figure& figure)
    {
        paragraph(fmt::format("Figure {}: {}", figure.file, said(figure.caption)), "  ");
    }
    void print(const Solution&) {}
    void print(const Wrong&) {}
    void print(const Fact&) {}

    void choices(const std::vector<std::string>& all)
    {
        if (!all.empty()) m_out += "    " + joined(all, " | ") + "\n";
    }

    void extras(const std::string& id)
    {
        const auto hints = m_lesson.hintsOf(id);
        for (std::size_t i = 0;
             i < std::min<std::size_t>(hints.size(), static_cast<std::size_t>(std::max(m_options.hints, 0))); ++i) {
            std::string edits;
            for (const EditCommand& edit : hints[i]->edits) edits += (edits.empty() ? "" : "; ") + edit.text();
            paragraph(fmt::format("Hint {}: {}{}{}", i + 1, edits, edits.empty() ? "" : ". ", said(hints[i]->text)),
                      "    ");
        }
        const Solution* solution = m_options.solutions ? m_lesson.solutionOf(id) : nullptr;
        if (!solution) return;
        for (const auto& [of, words] : solution->said) m_out += fmt::format("    Answer: {}\n", words);
        if (m_lesson.quiz(id)) return;
        auto canvas = canvasOf(m_lesson, *solution);
        if (!canvas) return;
        m_out += "    Solution:\n";
        for (const auto& list : canvas->schedule.order) {
            std::string row;
            for (const Op& op : list) row += " " + stagewright::toText(op);
            m_out += "     " + row + "\n";
        }
    }

    const Lesson& m_lesson;
    const LessonTextOptions& m_options;
    std::unique_ptr<StepState> m_state;
    std::string m_out;
};

} // namespace

std::string lessonText(const Lesson& lesson, const LessonTextOptions& options)
{
    return LessonPrinter(lesson, options).text();
}

std::string gradesText(const std::vector<GradedBlock>& graded, bool colour)
{
    std::string out;
    for (const GradedBlock& one : graded) {
        const Verdict verdict = one.grade.verdict;
        const Tint tint = verdict == Verdict::Pass ? Tint::Good : verdict == Verdict::Fail ? Tint::Bad : Tint::Dim;
        out += fmt::format("{} {} {}{}: {}\n", tinted(std::string(lessons::toText(verdict)), tint, colour), one.kind,
                           one.id, one.grade.medal.empty() ? "" : " (" + one.grade.medal + ")",
                           one.grade.message.empty() ? "not answered" : one.grade.message);
        for (const Meter& meter : one.grade.meters)
            if (!meter.sign.empty() && verdict != Verdict::Open && one.kind != "quiz")
                out += fmt::format("    {} {} {}, needed {} {}\n", meter.holds ? "✓" : "✗", meter.subject,
                                   lessons::toText(meter.yours), meter.sign, lessons::toText(meter.needed));
    }
    return out;
}

Json valueJson(const Value& value)
{
    if (const double* number = value.number()) return *number;
    if (const bool* truth = value.truth()) return *truth;
    if (const std::string* text = value.text()) return *text;
    if (const List* list = value.list()) {
        Json out = Json::array();
        for (const Value& one : *list) out.push_back(valueJson(one));
        return out;
    }
    return nullptr;
}

Json gradesJson(const Lesson& lesson, const std::vector<GradedBlock>& graded)
{
    Json checks = Json::array();
    bool passed = false, failed = false;
    for (const GradedBlock& one : graded) {
        passed = passed || one.grade.verdict == Verdict::Pass;
        failed = failed || one.grade.verdict == Verdict::Fail;
        Json meters = Json::array();
        for (const Meter& meter : one.grade.meters)
            meters.push_back({{"subject", meter.subject},
                              {"value", valueJson(meter.yours)},
                              {"sign", meter.sign},
                              {"needed", valueJson(meter.needed)},
                              {"holds", meter.holds}});
        checks.push_back({{"id", one.id},
                          {"kind", one.kind},
                          {"verdict", std::string(lessons::toText(one.grade.verdict))},
                          {"grade", textOrNull(one.grade.medal)},
                          {"message", one.grade.message},
                          {"values", std::move(meters)}});
    }
    return {{"lesson", lesson.id},
            {"number", lesson.number > 0 ? Json(lesson.number) : Json(nullptr)},
            {"passed", passed && !failed},
            {"checks", std::move(checks)}};
}

std::string findingsText(const LessonReport& report, bool colour, bool notes)
{
    std::string out;
    for (const Finding& one : report.findings) {
        if (one.severity == Severity::Note && !notes) continue;
        const Tint tint = one.severity == Severity::Fault     ? Tint::Bad
                          : one.severity == Severity::Warning ? Tint::Warn
                                                              : Tint::Dim;
        out += fmt::format("{}:{}:{}: {} ({}): {}\n", report.file, one.at.line, std::max(one.at.column, 1),
                           tinted(std::string(lessons::toText(one.severity)), tint, colour), lessons::toText(one.point),
                           one.message);
    }
    return out;
}

Json reportJson(const LessonReport& report)
{
    Json findings = Json::array();
    for (const Finding& one : report.findings)
        findings.push_back({{"severity", std::string(lessons::toText(one.severity))},
                            {"point", std::string(lessons::toText(one.point))},
                            {"line", one.at.line},
                            {"column", one.at.column},
                            {"message", one.message}});
    return {{"lesson", report.lesson},
            {"file", report.file},
            {"sound", report.sound()},
            {"statements", report.statements},
            {"findings", std::move(findings)}};
}

} // namespace stagewright
