#include "app/ui/lessons/lesson_runs.h"

#include <algorithm>
#include <cmath>

#include <QDir>
#include <QFile>
#include <QFileInfo>
#include <QJsonArray>
#include <QJsonDocument>
#include <QJsonObject>
#include <QSettings>
#include <QThread>

#include "app/ui/workspace/offers.h"
#include "app/ui/workspace/workspace.h"
#include "schedules/check/validate.h"
#include "schedules/library/registry.h"
#include "schedules/setup/keys.h"
#include "traces/fit/fit_costs.h"
#include "traces/lessons/lesson_library.h"
#include "traces/lessons/record_plan.h"
#include "traces/lessons/reports.h"
#include "traces/store/run_file.h"
#include "widgets/background.h"
#include "widgets/literals.h"
#include "widgets/record/record_process.h"
#include "widgets/record/record_setup.h"

namespace stagewright {
namespace {

// The mean duration of the ops of a kind after the warm-up, in ns; 0: it does not occur.
double meanOf(const Run& run, OpKind kind)
{
    double sum = 0;
    int count = 0;
    for (const Span& span : run.timeline->spans())
        if (span.op.kind == kind && span.step >= run.info.warmupSteps) {
            sum += static_cast<double>(span.duration());
            ++count;
        }
    return count == 0 ? 0 : sum / count;
}

// On one line.
QString ratioWords(const char* words) { return QString::fromLatin1(words).replace(u' ', QChar(QChar::Nbsp)); }

QString costWords(const std::vector<std::pair<std::string, std::shared_ptr<const Run>>>& runs)
{
    for (auto it = runs.rbegin(); it != runs.rend(); ++it) {
        const Run& run = *it->second;
        const double f = meanOf(run, OpKind::Forward), i = meanOf(run, OpKind::InputGrad),
                     w = meanOf(run, OpKind::WeightGrad), b = meanOf(run, OpKind::Backward);
        if (f <= 0) continue;
        auto ms = [](double ns) { return durationText(static_cast<Nanos>(std::llround(ns))); };
        if (i > 0 && w > 0)
            return u"Costs measured here: F %1 · I %2 · W %3, so %4. Textbooks assume equal thirds."_s.arg(
                ms(f), ms(i), ms(w), ratioWords("F : I : W = 1 : %1 : %2").arg(fixed(i / f, 2), fixed(w / f, 2)));
        if (b > 0)
            return u"Costs measured here: F %1 · B %2, so %3. Textbooks assume 1 : 2."_s.arg(
                ms(f), ms(b), ratioWords("F : B = 1 : %1").arg(fixed(b / f, 2)));
    }
    return {};
}

// A schedule of a run block as the learner knows it: "your order", the library's title, or a file written here by its
// block.
QString orderWords(const QString& name)
{
    if (findSchedule(name.section(u':', 0, 0).toStdString())) return scheduleTitle(name.toStdString());
    // "mine", or a goal that it answers
    if (!name.endsWith(".csv"_L1) || name.endsWith("mine.csv"_L1)) return u"your order"_s;
    return u"%1, as recorded"_s.arg(name.chopped(4));
}

// Each run's step beside the one that its schedule has with the costs fitted from it, and how well they agree.
// Markdown.
QString predictionWords(const std::vector<std::pair<std::string, std::shared_ptr<const Run>>>& runs)
{
    QString rows;
    double worst = 0;
    for (const auto& [name, run] : runs) {
        const auto model = lessons::SimulatedReport::predicted(*run);
        if (!model) continue;
        const auto predicted = model->figure("makespan");
        const auto measured = lessons::RecordedReport(run).figure("makespan");
        if (!predicted || !measured || predicted->number() == nullptr || measured->number() == nullptr ||
            *measured->number() <= 0)
            continue;
        const double off = *predicted->number() / *measured->number() - 1;
        worst = std::max(worst, std::abs(off));
        const auto time = [](double ns) { return durationText(static_cast<Nanos>(std::llround(ns))); };
        rows +=
            u"\n| %1 | %2 | %3 |"_s.arg(orderWords(qs(name)), time(*predicted->number()), time(*measured->number()));
    }
    if (rows.isEmpty()) return {};
    const QString head = u"| step time | predicted | measured |\n|---|---|---|"_s;
    if (worst <= 0.05)
        return head + rows + u"\n\n"_s +
               u"With these costs the model predicts the step to within %1."_s.arg(percentText(worst));
    return head + rows + u"\n\n"_s +
           u"The model is off by up to %1: the run had waits that these costs don't contain."_s.arg(percentText(worst));
}

// The child's own report if it did not finish.
lessons::RunFailure failureOf(const RecordProcess& process)
{
    lessons::RunFailure failure;
    failure.message = process.errorMessage().toStdString();
    const QJsonObject answer = QJsonDocument::fromJson(process.result()).object();
    for (const auto one : answer[u"runs"_s].toArray()) {
        const QJsonObject run = one.toObject();
        if (!run[u"hung"_s].toBool()) continue;
        failure.hung = true;
        for (const auto wait : run[u"cycle"_s].toArray())
            failure.cycle.push_back(wait.isObject() ? wait.toObject()[u"rank"_s].toInt(-1) : wait.toInt());
        for (const auto victim : run[u"victims"_s].toArray()) failure.victims.push_back(victim.toInt());
    }
    if (failure.message.empty())
        failure.message = failure.hung ? "the ranks wait for each other" : "the recording failed without a message";
    return failure;
}

// Runs are found again by their lesson: "Lesson 5: 1F1B", "Lesson 15: Patient A". A name that can't be written stays.
void nameRuns(const QString& file, const QStringList& schedules, const QString& title)
{
    auto opened = RunFile::open(file.toStdString(), OpenMode::Write);
    for (int tries = 0; !opened && tries < 40; ++tries) { // the window is closing it
        QThread::msleep(50);
        opened = RunFile::open(file.toStdString(), OpenMode::Write);
    }
    if (!opened) return;
    const auto infos = (*opened)->runs();
    if (!infos) return;
    for (std::size_t i = 0; i < infos->size(); ++i) {
        const QString order = orderWords(schedules.value(static_cast<qsizetype>(i), qs((*infos)[i].scheduleName)));
        (void)(*opened)->rename((*infos)[i].id, (title.endsWith(": "_L1) ? title + order : title).toStdString());
    }
}

const QString paceKey = u"lessons/secondsPerSample"_s;

// Samples that `record` trains so, under all schedules; 0 for a model or an end of its own, whose pace is another.
double samplesOf(const Setup& setup, const lessons::RunBlock& block)
{
    for (const char* own : {"--model", "--timeout"})
        if (std::find(block.arguments.begin(), block.arguments.end(), own) != block.arguments.end()) return 0;
    if (block.expectFailure) return 0;
    const int steps = setup.steps > 0 ? setup.steps : usualRecording().steps;
    return static_cast<double>(setup.schedules.size()) * (steps + setup.warmup) * setup.microbatches *
           setup.microbatchSize * setup.replicas;
}

QString namesKey(const QString& file) { return u"lessons/runs/"_s + QFileInfo(file).completeBaseName(); }

} // namespace

LessonRuns::LessonRuns(Workspace& workspace, QObject* parent) : QObject(parent), m_workspace(workspace)
{
    RecordProcess* process = workspace.feature<Recording>()->process();
    connect(process, &RecordProcess::progressed, this, [this] {
        if (!m_block.isEmpty()) emit progressed();
    });
    connect(process, &RecordProcess::finished, this, &LessonRuns::ended);
    connect(&m_check, &QProcess::finished, this, [this] {
        const QString block = std::exchange(m_checked, QString());
        const QJsonObject answer = QJsonDocument::fromJson(m_check.readAllStandardOutput()).object();
        if (block.isEmpty() || answer.isEmpty()) return;
        QStringList rows;
        for (const auto one : answer[u"checks"_s].toArray()) {
            const QJsonObject check = one.toObject();
            rows << u"%1, %2: %3"_s.arg(orderWords(check[u"schedule"_s].toString()), check[u"shape"_s].toString(),
                                        check[u"note"_s].toString());
        }
        m_proofs[block] = rows.join(u'\n');
        emit proved(block, answer[u"passed"_s].toBool(), m_proofs[block]);
    });
}

QString LessonRuns::fileOf(const lessons::Lesson& lesson, const lessons::RunBlock& block)
{
    return qs(lessons::learnerFolder()) + u"/runs/%1-%2.stagewright"_s.arg(qs(lesson.id), qs(block.id));
}

Result<void> LessonRuns::start(const LessonSession& session, const lessons::RunBlock& block)
{
    auto refuse = [](const QString& what, const QString& remedy) {
        return tl::unexpected(Error{ErrorCode::Unavailable, what.toStdString(), remedy.toStdString()});
    };
    if (!m_block.isEmpty() || m_workspace.feature<Recording>()->process()->running())
        return refuse(u"a recording is running"_s, u"wait for it, or cancel it"_s);
    if (findStagewright().isEmpty())
        return refuse(u"the program stagewright was not found"_s,
                      u"put it beside this program or on PATH, or set STAGEWRIGHT_PROGRAM"_s);
    // "mine" means the learner's order, which is added if no schedule of the block equals it.
    const Schedule& order = session.canvas().schedule;
    lessons::RunBlock asked = block;
    std::map<std::string, Schedule> answers = session.orders();
    const bool whole = validate(order).valid();
    if (whole) answers["mine"] = order;
    const std::string known = recognise(order).substr(0, recognise(order).find(':'));
    const std::string folder = m_orders.path().toStdString();
    STAGEWRIGHT_TRY(auto plan, lessons::recordPlan(session.lesson(), block, folder, answers));
    const bool fits = whole && order.ranks == plan.setup.ranks && order.microbatches == plan.setup.microbatches;
    for (std::size_t i = 0; i + 1 < asked.arguments.size(); ++i) {
        if (asked.arguments[i] != "--schedule") continue;
        const QStringList names = qs(asked.arguments[i + 1]).split(u',');
        const bool named = names.contains(u"mine"_s) || names.contains(qs(known)) ||
                           std::any_of(names.begin(), names.end(), [&](const QString& name) {
                               return session.lesson().check(name.toStdString()) != nullptr;
                           });
        if (!fits || named || !block.edits.empty() || block.expectFailure) continue;
        asked.arguments[i + 1] += ",mine";
        STAGEWRIGHT_TRY(plan, lessons::recordPlan(session.lesson(), asked, folder, answers));
    }
    for (const auto& [path, text] : plan.files) {
        QFile file(qs(path));
        if (!file.open(QIODevice::WriteOnly) || file.write(text.data(), static_cast<qint64>(text.size())) < 0)
            return refuse(u"file %1: %2"_s.arg(file.fileName(), file.errorString()),
                          u"free some space in the temporary folder"_s);
    }
    const Setup& setup = plan.setup;
    m_schedules.clear();
    for (const std::string& name : plan.schedules) m_schedules << qs(name);
    m_recorded.clear();
    for (const std::string& name : setup.schedules) m_recorded << qs(name);
    m_recorded.removeDuplicates();

    m_file = fileOf(session.lesson(), block);
    const lessons::Lesson& lesson = session.lesson();
    m_title = (lesson.number > 0 ? u"Lesson %1: "_s.arg(lesson.number) : u"Lesson %1: "_s.arg(qs(lesson.id))) +
              (m_schedules.size() == 1 && lesson.all<lessons::RunBlock>().size() > 1 ? runWords(block) : QString());
    QDir().mkpath(QFileInfo(m_file).absolutePath());
    QFile::remove(m_file);
    m_block = qs(block.id);
    m_samples = samplesOf(setup, block);
    m_time.start();
    m_workspace.library()->close(m_file);
    m_workspace.library()->setAside(m_file);
    m_workspace.feature<Recording>()->startRecording(setup, m_file, true, true);
    if (!m_workspace.feature<Recording>()->process()->running()) {
        m_block.clear();
        return refuse(u"the recording did not start"_s, m_workspace.banner()->text());
    }
    emit progressed();
    return {};
}

void LessonRuns::cancel()
{
    if (!m_block.isEmpty()) m_workspace.feature<Recording>()->process()->cancel();
}

void LessonRuns::ended()
{
    if (m_block.isEmpty()) return;
    const RecordProcess* process = m_workspace.feature<Recording>()->process();
    std::optional<lessons::RunFailure> failure;
    if (process->state() == RecordProcess::State::Cancelled)
        failure = lessons::RunFailure{"cancelled", false, true, {}, {}};
    else if (process->state() != RecordProcess::State::Finished)
        failure = failureOf(*process);
    if (!failure && m_samples > 0)
        QSettings().setValue(paceKey, static_cast<double>(m_time.elapsed()) / 1000 / m_samples);
    QSettings().setValue(namesKey(m_file), m_schedules);
    read(std::exchange(m_block, QString()), m_file, m_schedules, failure, m_title);
}

void LessonRuns::readKept(const lessons::Lesson& lesson, const lessons::RunBlock& block)
{
    const QString file = fileOf(lesson, block);
    if (m_block.isEmpty() && QFileInfo::exists(file))
        read(qs(block.id), file, QSettings().value(namesKey(file)).toStringList(), {}, {});
}

void LessonRuns::read(const QString& block, const QString& file, const QStringList& schedules,
                      const std::optional<lessons::RunFailure>& failure, const QString& title)
{
    inBackground(
        this,
        [block, file, schedules, failure, title]() -> Outcome {
            if (!title.isEmpty()) nameRuns(file, schedules, title);
            Outcome outcome{block, file, {}, failure, {}};
            auto opened = RunFile::open(file.toStdString(), OpenMode::Read);
            if (!opened) return outcome;
            auto infos = (*opened)->runs();
            if (!infos) return outcome;
            for (std::size_t i = 0; i < infos->size(); ++i) {
                const RunInfo& info = (*infos)[i];
                if (info.state != RunState::Complete || info.steps == 0) continue;
                auto run = (*opened)->read(info.id);
                if (!run) continue;
                if (auto costs = costsOf(*run)) run->costs = std::move(*costs);
                const std::string name = i < static_cast<std::size_t>(schedules.size())
                                             ? schedules[static_cast<qsizetype>(i)].toStdString()
                                             : info.scheduleName;
                outcome.runs.emplace_back(name, std::make_shared<const Run>(std::move(*run)));
            }
            outcome.note =
                QStringList{costWords(outcome.runs), predictionWords(outcome.runs)}.join(u"\n\n"_s).trimmed();
            return outcome;
        },
        [this](const Outcome& outcome) { emit finished(outcome); });
}

double LessonRuns::expectedSeconds(const lessons::Lesson& lesson, const lessons::RunBlock& block)
{
    const auto plan = lessons::recordPlan(lesson, block, {}, {});
    if (!plan) return 0;
    return samplesOf(plan->setup, block) * std::max(0.0, QSettings().value(paceKey).toDouble());
}

void LessonRuns::prove(const QString& block, int ranks, int microbatches)
{
    if (m_check.state() != QProcess::NotRunning || m_recorded.isEmpty()) return;
    m_checked = block;
    m_check.start(findStagewright(),
                  {u"check"_s, u"-s"_s, m_recorded.join(u','), u"-p"_s, QString::number(ranks), u"-m"_s,
                   QString::number(microbatches), u"--backend"_s, u"cpu"_s, u"--json"_s, u"--progress"_s, u"none"_s});
}

} // namespace stagewright
