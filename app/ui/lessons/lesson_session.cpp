#include "app/ui/lessons/lesson_session.h"

#include <algorithm>
#include <chrono>

#include <QSettings>

#include "schedules/check/validate.h"
#include "schedules/edit/edit_ops.h"
#include "schedules/text/csv.h"
#include "traces/lessons/handed_in.h"
#include "traces/lessons/lesson_library.h"
#include "widgets/literals.h"

namespace stagewright {
namespace {

std::string csvOf(const Schedule& schedule)
{
    const auto text = writeScheduleCsv(schedule);
    return text ? *text : std::string();
}

QString pageKey(const lessons::Lesson& lesson) { return u"lessons/%1/page"_s.arg(qs(lesson.id)); }

} // namespace

LessonSession::LessonSession(std::shared_ptr<const lessons::Lesson> lesson, QObject* parent)
    : QObject(parent), m_lesson(std::move(lesson)), m_pages(pagesOf(*m_lesson))
{
    if (m_pages.empty()) m_pages.emplace_back();
    auto progress = lessons::LearnerProgress::read(lessons::LearnerProgress::defaultPath());
    if (progress) {
        m_progress = std::move(*progress);
        m_progress.regrade(*m_lesson);
        for (const lessons::KeptAnswer& answer : m_progress.answers()) {
            if (answer.lesson != m_lesson->id) continue;
            if (!answer.said.empty()) m_learner.said[answer.check] = answer.said;
            if (answer.mark == lessons::Mark::Shown && m_lesson->quiz(answer.check) != nullptr)
                m_shown[answer.check]; // it stays so
        }
    } else {
        m_fault = progress.error();
    }
    m_page = std::clamp(QSettings().value(pageKey(*m_lesson), 0).toInt(), 0, static_cast<int>(m_pages.size()) - 1);
    begin();
}

void LessonSession::goTo(int index)
{
    index = std::clamp(index, 0, static_cast<int>(m_pages.size()) - 1);
    if (index == m_page) return;
    const int before = page().step;
    m_page = index;
    QSettings().setValue(pageKey(*m_lesson), m_page);
    if (page().step != before) begin();
    emit pageChanged();
}

std::map<std::string, Schedule> LessonSession::orders() const
{
    lessons::HandedIn given; // those that can't be read are as if they were not there
    for (const lessons::KeptAnswer& answer : m_progress.answers())
        if (answer.lesson == m_lesson->id) static_cast<void>(given.take(*m_lesson, answer));
    return std::move(given.orders);
}

void LessonSession::begin()
{
    const lessons::Step* now = step();
    if (now == nullptr) return;
    auto start = lessons::startOf(*m_lesson, *now, orders());
    if (!start) {
        m_fault = start.error();
        m_canvas = {lessons::emptySchedule(now->settings), now->settings};
    } else {
        m_canvas = std::move(*start);
    }
    m_startCsv = csvOf(m_canvas.schedule);
    // Restores earlier progress.
    for (const lessons::Block* block : page().blocks) {
        const auto* check = std::get_if<lessons::Check>(block);
        const lessons::KeptAnswer* answer = check != nullptr ? m_progress.find(m_lesson->id, check->id) : nullptr;
        if (answer == nullptr || answer->csv.empty()) continue;
        auto settings = lessons::withSettings(now->settings, answer->settings);
        auto schedule = readScheduleCsv(answer->csv, {.everyRow = true}, m_canvas.schedule.name);
        if (!settings || !schedule) continue;
        schedule->ranks = std::max(schedule->ranks, m_canvas.schedule.ranks);
        m_canvas = {std::move(*schedule), *settings};
        if (answer->mark == lessons::Mark::Shown) m_shown[check->id] = m_canvas;
        break;
    }
}

void LessonSession::setOrder(const Schedule& schedule) { m_canvas.schedule = schedule; }

Result<void> LessonSession::apply(const std::string& words)
{
    STAGEWRIGHT_TRY(auto edits, lessons::parseEdits(words));
    for (const lessons::EditCommand& edit : edits)
        if (!allows(edit.tool()))
            return tl::unexpected(
                Error{ErrorCode::Usage, "this step doesn't allow '" + edit.verb + "'", "it allows " + allowed()});
    STAGEWRIGHT_TRY(auto next, lessons::applyEdits(edits, m_canvas));
    if (runs(m_canvas.schedule) && !runs(next.schedule)) return tl::unexpected(whyNot(next.schedule));
    m_canvas = std::move(next);
    emit canvasChanged();
    return {};
}

bool LessonSession::runs(const Schedule& schedule)
{
    auto count = [](const Schedule& one) {
        std::size_t ops = 0;
        for (const auto& rank : one.order) ops += rank.size();
        return ops;
    };
    return count(lessons::runnablePart(schedule)) == count(schedule);
}

// The fault of the placed ops; ops in the tray are not faults.
Error LessonSession::whyNot(const Schedule& schedule)
{
    const Validation validation = validate(schedule);
    const Fault* chosen = nullptr;
    for (const Fault& fault : validation.faults)
        if (fault.kind != FaultKind::Count && fault.kind != FaultKind::Shape &&
            (chosen == nullptr || chosen->kind == FaultKind::Deadlock))
            chosen = &fault;
    if (chosen != nullptr) return Error{ErrorCode::Invalid, chosen->message, chosen->remedy};
    // No op is out of order: an input is not placed yet.
    const Schedule part = lessons::runnablePart(schedule);
    for (std::size_t rank = 0; rank < schedule.order.size(); ++rank) {
        const std::size_t ran = rank < part.order.size() ? part.order[rank].size() : 0;
        if (ran == schedule.order[rank].size()) continue;
        const Op& op = schedule.order[rank][ran];
        const std::optional<Op> input = unplacedInput(schedule, op);
        if (!input) continue; // it waits for one of another rank that waits
        const char* what = isForward(input->kind) ? "activations" : "gradient";
        return Error{ErrorCode::Invalid,
                     "place " + toText(*input) + " on rank " +
                         std::to_string(schedule.placement.rankOf(input->stage, input->microbatch)) +
                         " first: " + toText(op) + " needs its " + what,
                     ""};
    }
    return Error{ErrorCode::Invalid, "this order can't run", ""};
}

bool LessonSession::touched() const
{
    const lessons::Step* now = step();
    return now != nullptr && (csvOf(m_canvas.schedule) != m_startCsv || !(m_canvas.settings == now->settings));
}

void LessonSession::reset()
{
    const lessons::Step* now = step();
    if (now == nullptr) return;
    if (auto start = lessons::startOf(*m_lesson, *now, orders())) m_canvas = std::move(*start);
    for (const lessons::Block* block : page().blocks)
        if (const auto* check = std::get_if<lessons::Check>(block)) m_shown.erase(check->id);
    emit canvasChanged();
}

// "place, move and text"
std::string LessonSession::allowed() const
{
    const lessons::Step* now = step();
    std::string words;
    for (std::size_t i = 0; now != nullptr && i < now->allow.size(); ++i)
        words += (i == 0 ? "" : i + 1 == now->allow.size() ? " and " : ", ") + now->allow[i];
    return words.empty() ? "no changes" : words;
}

bool LessonSession::allows(std::string_view tool) const
{
    const lessons::Step* now = step();
    return now != nullptr && lessons::allowsTool(now->allow, tool);
}

int LessonSession::missesOf(const std::string& quiz) const
{
    const auto found = m_misses.find(quiz);
    return found == m_misses.end() ? 0 : static_cast<int>(found->second.size());
}

void LessonSession::say(const std::string& id, const std::string& words)
{
    if (m_learner.said[id] == words) return;
    m_learner.said[id] = words;
    keep(id, lessons::Mark::Guessed, false);
    write();
    emit answersChanged();
}

int LessonSession::hintsOf(const std::string& check) const
{
    const auto found = m_hints.find(check);
    return found == m_hints.end() ? 0 : found->second;
}

int LessonSession::nextHint(const std::string& check)
{
    const auto hints = m_lesson->hintsOf(check);
    int& shownHints = m_hints[check];
    if (shownHints < static_cast<int>(hints.size())) ++shownHints;
    const int count = shownHints;
    if (count > 0) {
        const lessons::Hints::Hint& hint = *hints[static_cast<std::size_t>(count - 1)];
        if (!hint.edits.empty()) {
            if (auto next = lessons::applyEdits(hint.edits, m_canvas)) {
                m_canvas = std::move(*next);
                emit canvasChanged();
            }
        }
    }
    emit answersChanged();
    return count;
}

Result<void> LessonSession::show(const std::string& check)
{
    const lessons::Solution* solution = m_lesson->solutionOf(check);
    if (solution == nullptr)
        return tl::unexpected(Error{ErrorCode::Usage,
                                    "lesson " + m_lesson->id + ": check " + check + " has no solution",
                                    "write a solution block"});
    STAGEWRIGHT_TRY(auto solved, lessons::canvasOf(*m_lesson, *solution));
    m_shown[check] = solved;
    if (m_lesson->check(check) != nullptr) m_canvas = std::move(solved);
    for (const auto& [id, words] : solution->said) m_learner.said[id] = words;
    emit canvasChanged();
    emit answersChanged();
    return {};
}

void LessonSession::adopt(const std::string& block,
                          const std::vector<std::pair<std::string, std::shared_ptr<const Run>>>& runs,
                          const std::optional<lessons::RunFailure>& failure)
{
    const std::string folder = block + "/";
    for (auto it = m_learner.runs.begin(); it != m_learner.runs.end();)
        it = it->first.starts_with(folder) ? m_learner.runs.erase(it) : std::next(it);
    m_learner.failures.erase(block);
    for (const auto& [name, run] : runs) m_learner.runs[folder + name] = run;
    if (failure) m_learner.failures[block] = *failure;
    emit answersChanged();
}

void LessonSession::keepFigure(const std::string& file)
{
    for (const lessons::Check* check : m_lesson->all<lessons::Check>()) {
        const lessons::KeptAnswer* answer = m_progress.find(m_lesson->id, check->id);
        lessons::KeptAnswer changed = answer != nullptr ? *answer : lessons::KeptAnswer{};
        changed.lesson = m_lesson->id;
        changed.check = check->id;
        changed.figure = file;
        m_progress.keep(std::move(changed));
        m_changed.insert(check->id);
        break;
    }
    write();
}

void LessonSession::startOver()
{
    m_progress.forget(m_lesson->id);
    m_changed.clear();
    m_forgotten = true;
    write();
    m_learner = {};
    m_hints.clear();
    m_misses.clear();
    m_shown.clear();
    m_page = 0;
    QSettings().remove(pageKey(*m_lesson));
    begin();
    emit pageChanged();
}

lessons::Mark LessonSession::markOf(const std::string& check) const
{
    const lessons::KeptAnswer* answer = m_progress.find(m_lesson->id, check);
    return answer != nullptr ? answer->mark : lessons::Mark::None;
}

void LessonSession::keep(const std::string& id, lessons::Mark mark, bool withCanvas)
{
    lessons::KeptAnswer answer;
    if (const lessons::KeptAnswer* before = m_progress.find(m_lesson->id, id)) answer = *before;
    answer.lesson = m_lesson->id;
    answer.check = id;
    answer.hash = m_lesson->hash;
    answer.mark = std::max(mark, mark == lessons::Mark::Guessed ? answer.mark : mark);
    if (withCanvas) {
        answer.csv = csvOf(m_canvas.schedule);
        if (const lessons::Step* now = step()) answer.settings = lessons::changesOf(m_canvas.settings, now->settings);
    }
    const auto said = m_learner.said.find(id);
    if (said != m_learner.said.end()) answer.said = said->second;
    answer.unixMs =
        std::chrono::duration_cast<std::chrono::milliseconds>(std::chrono::system_clock::now().time_since_epoch())
            .count();
    m_progress.keep(std::move(answer));
    m_changed.insert(id);
}

// A pass is saved with its order; an unfinished order only while there is nothing better.
void LessonSession::read(const PageReading& reading)
{
    const std::size_t count = std::min(reading.blocks.size(), page().blocks.size());
    bool changed = false;
    for (std::size_t i = 0; i < count; ++i) {
        const BlockReading& block = reading.blocks[i];
        const bool pass = block.state == lessons::Verdict::Pass;
        if (const auto* check = std::get_if<lessons::Check>(page().blocks[i])) {
            const auto solved = m_shown.find(check->id);
            const bool own =
                solved == m_shown.end() || solved->second.settings.microbatches != m_canvas.settings.microbatches;
            const lessons::Mark before = markOf(check->id);
            if (pass && own && before < lessons::Mark::Done) {
                keep(check->id, lessons::Mark::Done, true);
                changed = true;
            } else if (pass && !own && before < lessons::Mark::Shown) {
                keep(check->id, lessons::Mark::Shown, true);
                changed = true;
            } else if (!pass && before < lessons::Mark::Done && csvOf(m_canvas.schedule) != m_startCsv) {
                keep(check->id, lessons::Mark::Guessed, true);
                changed = true;
            }
        } else if (const auto* quiz = std::get_if<lessons::Quiz>(page().blocks[i])) {
            const lessons::Mark wanted = m_shown.count(quiz->id) > 0 ? lessons::Mark::Shown : lessons::Mark::Done;
            if (block.state == lessons::Verdict::Fail) m_misses[quiz->id].insert(m_learner.said[quiz->id]);
            // The second miss brings the first hint; a hint that moves an op comes only by its button.
            if (const auto hints = m_lesson->hintsOf(quiz->id);
                missesOf(quiz->id) >= 2 && hintsOf(quiz->id) == 0 && !hints.empty() && hints.front()->edits.empty())
                m_hints[quiz->id] = 1;
            if (pass && markOf(quiz->id) < wanted) {
                keep(quiz->id, wanted, false);
                changed = true;
            }
        } else if (const auto* run = std::get_if<lessons::RunBlock>(page().blocks[i])) {
            if (pass && !block.goals.empty() && markOf(run->id) != lessons::Mark::Proved) {
                keep(run->id, lessons::Mark::Proved, false);
                changed = true;
            }
        }
    }
    if (changed) write();
}

void LessonSession::write()
{
    if (m_fault && m_fault->code == ErrorCode::Unreadable) return; // a damaged file is left for the learner to fix
    auto written = lessons::LearnerProgress::change(
        lessons::LearnerProgress::defaultPath(), [this](lessons::LearnerProgress& kept) {
            if (m_forgotten) kept.forget(m_lesson->id);
            kept.regrade(*m_lesson);
            for (const std::string& check : m_changed)
                if (const lessons::KeptAnswer* answer = m_progress.find(m_lesson->id, check)) kept.keep(*answer);
        });
    if (!written) {
        m_fault = written.error();
        return;
    }
    m_progress = std::move(*written);
    m_changed.clear();
    m_forgotten = false;
}

} // namespace stagewright
