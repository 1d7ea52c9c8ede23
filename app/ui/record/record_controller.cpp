#include "app/ui/record/record_controller.h"

#include <algorithm>

#include <QDateTime>
#include <QDir>
#include <QFile>
#include <QFileInfo>
#include <QMessageBox>
#include <QPushButton>
#include <QSettings>
#include <QStandardPaths>
#include <QVBoxLayout>

#include "app/costs/training_backends.h"
#include "app/ui/workspace/workspace.h"
#include "schedules/model/mesh.h"
#include "schedules/setup/keys.h"
#include "schedules/setup/prepare.h"
#include "schedules/text/csv.h"
#include "traces/report/run_report.h"
#include "traces/run/simulated_run.h"
#include "traces/store/run_file.h"
#include "widgets/background.h"
#include "widgets/edit/schedule_editor.h"
#include "widgets/hosts/host_calls.h"
#include "widgets/literals.h"
#include "widgets/record/record_dialog.h"
#include "widgets/record/record_setup.h"
#include "widgets/record/record_strip.h"
#include "widgets/sentence.h"

namespace stagewright {
namespace {

const QString setupKey = u"record/setup"_s; // the last content of the form, as options

Setup lastSetup()
{
    std::vector<std::string> options;
    for (const QString& word : QSettings().value(setupKey).toStringList()) options.push_back(word.toStdString());
    return options.empty() ? usualRecording() : withOptions({}, options).value_or(usualRecording());
}

// The path, or one with a number if the file exists.
QString freePath(const QString& path)
{
    const QFileInfo info(path);
    QString free = path;
    for (int number = 2; QFileInfo::exists(free); ++number)
        free = info.path() + u'/' + info.completeBaseName() + u"-%1."_s.arg(number) + info.suffix();
    return free;
}

// What a file of a schedule of that name is called.
QString orderName(const RunInfo& info)
{
    QString base = QString::fromStdString(info.scheduleName).section(u'/', -1);
    if (base.endsWith(".csv"_L1)) base.chop(4);
    return base.isEmpty() ? u"schedule"_s : base;
}

} // namespace

std::vector<ActionEntry> RecordController::actionTable()
{
    return {
        item("record", ActionGroup::ScheduleRecord, u"&Record…"_s, "Ctrl+R",
             u"Trains for real under one or several schedules and records what happens"_s,
             {.button = u"Record…"_s, .tool = 12, .needs = Needs::Nothing, .missing = u"A recording is running."_s}),
        item(
            "recordAgain", ActionGroup::ScheduleRecord, u"Record a&gain…"_s, {},
            u"The dialog with what this run was recorded with: its order, model and conditions, such as disturbances"_s,
            {.needs = Needs::Reading, .missing = u"This run has no order, or a recording is running."_s}),
        item("cancelRecording", ActionGroup::ScheduleRecord, u"&Cancel the recording"_s, {},
             u"Stops; complete steps are kept"_s,
             {.needs = Needs::Nothing, .missing = u"Nothing is being recorded."_s}),
        item("runEdited", ActionGroup::ScheduleEdit, u"R&un the edited schedule"_s, "Ctrl+Return",
             u"Trains it for real and compares it with the original"_s,
             {.at = 40, .needs = Needs::Editing, .missing = u"Needs a valid order and no running recording."_s}),
    };
}

RecordController::RecordController(Workspace& workspace) : Feature(workspace), m_process(new RecordProcess(this))
{
    workspace.banner()->carry(new RecordStrip(m_process, workspace.window()->centralWidget()));
    Actions& actions = workspace.actions();
    connect(actions["record"], &QAction::triggered, this, [this] { openRecordDialog(); });
    connect(actions["recordAgain"], &QAction::triggered, this, [this] { recordAgain(); });
    connect(actions["cancelRecording"], &QAction::triggered, this, [this] { m_process->cancel(); });
    connect(actions["runEdited"], &QAction::triggered, this, &RecordController::runEdited);
    connect(m_process, &RecordProcess::finished, this, &RecordController::recordingEnded);
    connect(m_process, &RecordProcess::progressed, &workspace, &Workspace::refreshActions);
    connect(m_process, &RecordProcess::progressed, this, &RecordController::tellConnection);
    connect(&workspace.shown(), &Shown::asked, this, [this] { m_followLive = false; });
    connect(workspace.library(), &RunLibrary::listed, this,
            [this](const QString& path, const std::vector<RunRef>& refs) {
                if (awaits(path)) followRecording(refs);
            });
    connect(workspace.library(), &RunLibrary::failed, this, [this](const QString& path) {
        if (path == m_recordFile) m_looking = false;
    });
    connect(&workspace, &Workspace::actionsRefreshed, this, [this] {
        Actions& all = m_workspace.actions();
        all["record"]->setEnabled(!m_process->running());
        const Shown& shown = m_workspace.shown();
        all["recordAgain"]->setEnabled(!m_process->running() && shown.mode() == Shown::Mode::Run && shown.view() &&
                                       shown.view()->run->schedule);
        all["cancelRecording"]->setEnabled(m_process->running());
    });
    m_poll.setInterval(700);
    connect(&m_poll, &QTimer::timeout, this, &RecordController::pollRecording);
}

bool RecordController::mayClose()
{
    if (settled()) return true;
    if (m_process->running() && !m_closeAfter)
        askToStop();
    else
        m_closeAfter = true; // as soon as its runs are in their file
    return false;
}

QString RecordController::newRecordingPath(const QString& name) const
{
    QString folder = QStandardPaths::writableLocation(QStandardPaths::DocumentsLocation);
    if (!QFileInfo(folder).isDir() || !QFileInfo(folder).isWritable()) folder = QDir::homePath();
    return freePath(folder + u'/' + name + QDateTime::currentDateTime().toString(u"-yyyyMMdd-HHmmss"_s) +
                    u".stagewright"_s);
}

RecordDialog* RecordController::openRecordDialog() { return openDialog(lastSetup()); }

RecordDialog* RecordController::recordAgain()
{
    const auto view = m_workspace.shown().view();
    if (!view || !view->run->schedule) return nullptr;
    Setup setup = setupOf(*view->run);
    const std::string& name = setup.schedules.front();
    const auto made = namesFile(name) ? Result<Schedule>(fail(ErrorCode::Usage, {})) : readSchedule(name, setup, {});
    if (!made || made->order != replicaSchedule(*view->run->schedule, 0).order) { // not as the library makes it
        const auto order = scheduleOfRun(*view->run);
        const QString file = order ? writtenOrder(*order, orderName(view->run->info)) : QString();
        if (file.isEmpty()) return nullptr;
        setup.schedules = {file.toStdString()};
    }
    return openDialog(setup);
}

RecordDialog* RecordController::openDialog(const Setup& shown)
{
    // not one that has been closed just now
    if (auto* open = m_workspace.window()->findChild<RecordDialog*>(); open && open->isVisible()) {
        open->raise();
        return open;
    }
    auto* dialog = new RecordDialog(m_workspace.window());
    dialog->setAttribute(Qt::WA_DeleteOnClose);
    dialog->setProgram(findStagewright());
    QVector<TrainingBackend> backends;
    for (const BackendTitle& backend : backendsWithDevices())
        backends.append({QString::fromUtf8(backend.name), QString::fromUtf8(backend.title)});
    dialog->setBackends(backends);
    QStringList targets;
    if (m_workspace.shown().view() && !m_workspace.library()->isSimulated(m_workspace.shown().view()->ref.file))
        targets << m_workspace.shown().view()->ref.file;
    for (const QString& file : m_workspace.runs()->files())
        if (!m_workspace.library()->isSimulated(file) && !targets.contains(file)) targets << file;
    askDevices(findStagewright(), dialog,
               [dialog](const QVector<TrainingDevice>& devices) { dialog->setDevices(devices); });
    dialog->setSetup(shown);
    m_hosts.start(
        [program = findStagewright()](const std::stop_token& stop) {
            return askProgram(program, {u"hosts"_s, u"list"_s, u"--json"_s}, stop);
        },
        [dialog = QPointer<RecordDialog>(dialog)](const ProgramAnswer& answer) {
            if (!dialog) return;
            QStringList names;
            for (const HostEntry& host : hostsIn(answer.out)) names << host.name;
            dialog->setHosts(names);
        });
    dialog->setTargets(targets, newRecordingPath(u"recording"_s));
    connect(dialog, &QDialog::accepted, this, [this, dialog] {
        const Setup setup = dialog->setup();
        QStringList options;
        for (const std::string& word : optionsOf(setup)) options << QString::fromStdString(word);
        QSettings().setValue(setupKey, options);
        m_compareAfter = {};
        startRecording(setup, dialog->targetFile(), dialog->targetIsNew());
    });
    dialog->open();
    return dialog;
}

void RecordController::startRecording(const Setup& setup, const QString& target, bool targetIsNew, bool aside)
{
    if (m_process->running()) return;
    m_aside = aside;
    m_recorded.reset();
    m_predicted.reset();
    const QString program = findStagewright();
    if (program.isEmpty()) {
        m_workspace.banner()->showError(u"the program stagewright was not found"_s,
                                        u"put it beside this program or on PATH, or set STAGEWRIGHT_PROGRAM"_s);
        return;
    }
    const QString file = RunLibrary::normalised(targetIsNew ? freePath(target) : target);
    // A job elsewhere outlives this window and its temporary folder.
    const bool direct = targetIsNew || setup.elsewhere();
    begun(direct ? file : m_scratch.filePath(u"recording-%1.stagewright"_s.arg(++m_recordCount)), file);
    m_process->start(program, setup, m_recordFile);
}

void RecordController::attach(const QString& job, const QString& file)
{
    if (m_process->running()) {
        m_workspace.banner()->showRefusal(u"a recording is running"_s,
                                          u"only one can be followed at a time; the job goes on meanwhile"_s);
        return;
    }
    m_aside = false;
    begun(RunLibrary::normalised(file), RunLibrary::normalised(file));
    m_process->follow(findStagewright(), job, m_recordFile);
}

void RecordController::begun(const QString& file, const QString& target)
{
    m_workspace.banner()->clear();
    m_recordTarget = target;
    m_recordFile = file;
    m_wasThere = m_recordFile == m_recordTarget && QFileInfo::exists(m_recordFile);
    if (!m_wasThere) QFile::remove(m_recordFile);
    m_followLive = m_workspace.shown().mode() != Shown::Mode::Edit;
    m_looking = false;
    m_toldLost = false;
    m_look.invalidate();
    m_poll.start();
    m_workspace.refreshActions();
}

// Quietly: nothing is lost, and it connects again by itself.
void RecordController::tellConnection()
{
    const bool lost = !m_process->disconnected().isEmpty();
    if (lost == m_toldLost) return;
    m_toldLost = lost;
    if (lost)
        m_workspace.banner()->showNote(
            u"%1. The job goes on there; connecting again…"_s.arg(sentence(m_process->disconnected())));
    else
        m_workspace.banner()->showNote(u"Connected again; no step is missing."_s);
}

// A read costs a list of the runs, and the newest step if there is one. The next read waits ten times as long as the
// last one took, so that watching never takes more than 10 % of the time.
bool RecordController::isRecordingInto(const QString& file) const
{
    return (m_process->running() || m_workspace.library()->busy()) && (file == m_recordFile || file == m_recordTarget);
}

void RecordController::pollRecording()
{
    if (m_aside || !m_process->running() || m_process->runs().isEmpty() || !QFileInfo::exists(m_recordFile)) return;
    if (m_looking || (m_look.isValid() && m_look.elapsed() < m_lookPause)) return;
    m_looking = true;
    m_look.start();
    m_lookPause = 0;
    m_workspace.library()->open(m_recordFile);
}

void RecordController::followRecording(const std::vector<RunRef>& refs)
{
    auto looked = [this] {
        m_looking = false;
        m_lookPause = 10 * m_look.elapsed();
    };
    // Schedules are recorded in turn: the one on screen stays there until it is complete, then the next one that still
    // grows follows.
    const RunInfo* newest = nullptr;
    RunRef ref;
    for (const RunRef& one : refs)
        if (const RunInfo* info = m_workspace.runs()->info(one); info != nullptr && info->steps > 0) {
            const bool stays = one == m_workspace.shown().ref() && info->state == RunState::Recording;
            if (newest != nullptr && newest->state == RunState::Recording && !stays) continue;
            newest = info;
            ref = one;
            if (stays) break;
        }
    const bool shown = m_workspace.shown().view() && m_workspace.shown().view()->ref == ref &&
                       m_workspace.shown().mode() == Shown::Mode::Run;
    // A selection or a zoomed view keeps its step; otherwise the newest step is shown.
    const bool held = shown && (m_workspace.viewState()->selected().valid() ||
                                !m_workspace.viewState()->areas().empty() || !m_workspace.viewState()->isFitted());
    if (!m_followLive || newest == nullptr || held ||
        (shown && m_workspace.shown().view()->run->info.steps == newest->steps)) {
        looked();
        return;
    }
    const quint64 request = m_workspace.shown().latest();
    m_workspace.library()->requestNewest(
        ref, newest->steps - 1, [this, request, looked](Result<std::shared_ptr<const RunView>> view) {
            looked();
            if (!m_workspace.shown().isLatest(request) || !m_followLive || !m_process->running() || !view) return;
            m_workspace.shown().present(*view, true);
        });
}

bool RecordController::isScratch(const QString& file) const
{
    return file.startsWith(QDir::cleanPath(m_scratch.path()) + u'/');
}

std::pair<QString, QString> RecordController::recordingFiles() const
{
    if (!m_process->running() && !m_taking) return {};
    return {m_recordFile, m_recordTarget};
}

void RecordController::askToStop()
{
    if (m_stopQuestion) {
        m_stopQuestion->raise();
        return;
    }
    m_stopQuestion = new QMessageBox(QMessageBox::NoIcon, m_workspace.window()->windowTitle(),
                                     u"A recording is running."_s, QMessageBox::NoButton, m_workspace.window());
    m_stopQuestion->setObjectName(u"stopRecording"_s);
    m_stopQuestion->setAttribute(Qt::WA_DeleteOnClose);
    m_stopQuestion->setInformativeText(u"If you stop it, runs with a complete measured step are kept in %1."_s.arg(
        QDir::toNativeSeparators(m_recordTarget)));
    m_stopQuestion->addButton(m_process->elsewhere() ? u"Stop it there and close"_s : u"Stop and close"_s,
                              QMessageBox::AcceptRole);
    if (m_process->elsewhere()) m_stopQuestion->addButton(u"Let it run and close"_s, QMessageBox::DestructiveRole);
    auto* stay = new QPushButton(u"Keep recording"_s, m_stopQuestion);
    stay->setObjectName(u"primary"_s); // before the box has it, which fixes its style
    m_stopQuestion->addButton(stay, QMessageBox::RejectRole);
    m_stopQuestion->setDefaultButton(stay);
    m_stopQuestion->setEscapeButton(stay);
    connect(m_stopQuestion, &QMessageBox::finished, this, [this, box = m_stopQuestion.data()] {
        if (box->buttonRole(box->clickedButton()) == QMessageBox::DestructiveRole) { // it can be attached again
            m_closeAfter = true;
            m_process->leave();
            return;
        }
        if (box->buttonRole(box->clickedButton()) != QMessageBox::AcceptRole) {
            emit m_workspace.closeRefused();
            return;
        }
        m_closeAfter = true;
        m_process->cancel();
    });
    m_stopQuestion->open();
}

void RecordController::recordingTaken()
{
    m_taking = false;
    // what its program wrote last is not a change from outside, which would hide how the recording ended
    for (const QString& file : {m_recordFile, m_recordTarget}) emit m_workspace.fileWritten(file);
    m_workspace.refreshCaptions();
    if (!std::exchange(m_closeAfter, false)) return;
    QTimer::singleShot(0, &m_workspace, &Workspace::closeAsked);
}

void RecordController::recordingEnded()
{
    m_poll.stop();
    m_taking = true;
    if (m_stopQuestion && !m_closeAfter) m_stopQuestion->reject(); // it ended by itself: there is nothing to ask
    m_workspace.refreshActions();
    if (m_process->state() == RecordProcess::State::Failed && !m_aside)
        m_workspace.banner()->showError(m_process->errorMessage(), m_process->errorRemedy());
    if (!QFileInfo::exists(m_recordFile)) {
        dropRecording(m_recordFile);
        return;
    }
    // Measured steps are kept however the recording ended; a file without any is deleted.
    inBackground(
        this,
        [path = m_recordFile]() -> Result<bool> {
            // Opened to write, a file that was read while it grew becomes a single one again.
            auto file = RunFile::open(path.toStdString(), OpenMode::Write);
            if (!file) file = RunFile::open(path.toStdString(), OpenMode::Read);
            if (!file) return tl::unexpected(file.error());
            STAGEWRIGHT_TRY(auto infos, (*file)->runs());
            return !infos.empty();
        },
        [this](Result<bool> any) {
            if (any && *any)
                adoptRecording(m_recordFile);
            else
                dropRecording(m_recordFile);
        });
}

// What a stopped recording leaves, as a sentence.
QString RecordController::stoppedText(std::size_t runs) const
{
    const QString what = m_process->state() == RecordProcess::State::Cancelled ? u"The recording was cancelled"_s
                                                                               : u"The recording ended early"_s;
    if (runs == 0) return u"%1 before a measured step was complete; nothing was kept."_s.arg(what);
    const QString place = QDir::toNativeSeparators(m_recordTarget);
    return runs == 1 ? u"%1; the complete steps of 1 run are kept in %2."_s.arg(what, place)
                     : u"%1; the complete steps of %3 runs are kept in %2."_s.arg(what, place, QString::number(runs));
}

void RecordController::dropRecording(const QString& file)
{
    RunRef back = std::exchange(m_compareAfter, RunRef{});
    m_recorded.reset();
    if (m_wasThere) { // its other runs stay open
        if (m_process->state() == RecordProcess::State::Cancelled) m_workspace.banner()->showNote(stoppedText(0));
        recordingTaken();
        return;
    }
    m_workspace.library()->close(file);
    // its steps are gone: shows an existing run, from its target file if possible
    if (m_workspace.shown().view() && m_workspace.shown().view()->ref.file == file) {
        m_workspace.shown().setMode(Shown::Mode::Empty);
        const auto listed = m_workspace.runs()->refs();
        for (const RunRef& ref : listed)
            if (!back.valid() && ref.file == m_recordTarget) back = ref;
        if (!back.valid() && !listed.empty()) back = listed.front();
        if (m_workspace.runs()->info(back) != nullptr) m_workspace.shown().showRun(back);
    }
    if (isScratch(file)) QFile::remove(file);
    if (m_process->state() == RecordProcess::State::Cancelled && !m_aside)
        m_workspace.banner()->showNote(stoppedText(0));
    recordingTaken();
}

void RecordController::showRecorded(const QString& path, const std::vector<RunRef>& fresh)
{
    const RunRef original = m_compareAfter;
    const auto state = m_process->state();
    const bool completed = state == RecordProcess::State::Finished;
    m_compareAfter = {};
    const QString place = QDir::toNativeSeparators(path);
    const QString what = fresh.size() == 1 ? u"Recorded a run into %1"_s.arg(place)
                                           : u"Recorded %2 runs into %1"_s.arg(place, QString::number(fresh.size()));
    if (state == RecordProcess::State::Cancelled)
        m_workspace.banner()->showNote(stoppedText(fresh.size()));
    else if (completed && m_recordFile == m_recordTarget) // a file the user may not know of yet
        m_workspace.banner()->showNote(what);
    else
        m_workspace.room().tell(completed ? what : stoppedText(fresh.size()), 8000);
    if (original.valid() && completed && m_predicted) {
        m_predicted->info.name =
            u"%1, predicted"_s.arg(runTitle(*m_workspace.runs()->info(fresh.back()))).toStdString();
        const RunRef predicted = m_workspace.library()->addSimulated(std::move(*m_predicted));
        m_workspace.feature<RunComparing>()->showPredicted(original, predicted, fresh.back());
    } else if (original.valid() && completed)
        m_workspace.feature<RunComparing>()->show({original, fresh.back()});
    else if (fresh.size() == 2 && completed)
        m_workspace.feature<RunComparing>()->show({fresh[0], fresh[1]});
    else
        // not a plan
        m_workspace.shown().showRun(*std::find_if(fresh.begin(), fresh.end() - 1, [this](const RunRef& ref) {
            return m_workspace.runs()->info(ref)->provenance != Provenance::Simulated;
        }));
    m_predicted.reset();
}

void RecordController::adoptRecording(const QString& file)
{
    // kept only now: a failed recording leaves nothing
    if (m_recorded) m_workspace.feature<OrderEditing>()->recorded(*m_recorded);
    m_recorded.reset();
    auto show = [this](const QString& path, const std::vector<qint64>& ids) {
        // Listed first, so that the new runs are in the list when they are shown.
        auto once = std::make_shared<QMetaObject::Connection>();
        *once = connect(m_workspace.library(), &RunLibrary::listed, this,
                        [=, this](const QString& listedPath, const std::vector<RunRef>& refs) {
                            if (listedPath != path) return;
                            disconnect(*once);
                            std::vector<RunRef> fresh;
                            for (const RunRef& ref : refs)
                                if (ids.empty() || std::find(ids.begin(), ids.end(), ref.id) != ids.end())
                                    fresh.push_back(ref);
                            if (!fresh.empty() && !m_aside) showRecorded(path, fresh);
                            recordingTaken();
                        });
        if (!m_aside) m_workspace.feature<FileOpening>()->remember(path);
        m_workspace.library()->open(path);
    };
    if (file == m_recordTarget) {
        std::vector<qint64> ids;
        if (m_wasThere) {
            for (const RecordProcess::StartedRun& run : m_process->runs()) ids.push_back(run.id);
            for (const qint64 id : m_process->finishedRuns()) ids.push_back(id);
            if (ids.empty()) {
                dropRecording(file);
                return;
            }
        }
        show(file, ids);
        return;
    }
    m_workspace.library()->adopt(m_recordTarget, file, [this, file, show](Result<std::vector<qint64>> ids) {
        if (!ids) {
            // Moved out of the temporary folder, which is deleted with the window.
            const QString kept = newRecordingPath(QFileInfo(m_recordTarget).completeBaseName());
            const QString place = QFile::copy(file, kept) ? kept : file;
            m_workspace.banner()->showError(
                u"the runs could not be added to %1; they are in %2"_s.arg(m_recordTarget, place), ids.error());
            if (place == kept)
                show(kept, {});
            else
                recordingTaken();
            return;
        }
        if (m_workspace.shown().ref().file == file) m_workspace.shown().forget();
        m_workspace.library()->close(file);
        QFile::remove(file);
        show(m_recordTarget, *ids);
    });
}

void RecordController::takeUpRecording(const QString& file, const QString& target)
{
    m_workspace.library()->adopt(target, file, [this, file, target](const Result<std::vector<qint64>>& ids) {
        if (!ids) return; // still being written by another window, or unreadable
        QFile::remove(file);
        QDir().rmdir(QFileInfo(file).path()); // the folder of the window that ended
        if (ids->empty()) return;
        const QString place = QDir::toNativeSeparators(target);
        m_workspace.banner()->showNote(
            ids->size() == 1
                ? u"The window ended during a recording; the complete steps of 1 run are kept in %1."_s.arg(place)
                : u"The window ended during a recording; the complete steps of %2 runs are kept in %1."_s.arg(
                      place, QString::number(ids->size())));
        m_workspace.library()->open(target);
    });
}

// The order as a file of this name in the temporary folder, for the program that trains it; empty: a banner says why.
QString RecordController::writtenOrder(const Schedule& order, const QString& name)
{
    const auto text = writeScheduleCsv(order);
    if (!text) {
        m_workspace.banner()->showRefusal(u"this order can't be written"_s, text.error());
        return {};
    }
    const QString folder = m_scratch.filePath(QString::number(++m_recordCount));
    QDir().mkpath(folder);
    QFile file(folder + u'/' + name);
    if (!file.open(QIODevice::WriteOnly) || file.write(text->data(), static_cast<qint64>(text->size())) < 0) {
        m_workspace.banner()->showError(u"file %1: %2"_s.arg(file.fileName(), file.errorString()),
                                        u"free some space in the temporary folder"_s);
        return {};
    }
    return file.fileName();
}

void RecordController::runEdited()
{
    auto* editing = m_workspace.feature<OrderEditing>();
    const ScheduleEditor& editor = editing->editor();
    const auto source = editing->source();
    if (m_workspace.shown().mode() != Shown::Mode::Edit || !source || m_process->running()) return;
    if (!editor.valid()) {
        m_workspace.banner()->showRefusal(QString::fromStdString(editor.validation().faults.front().message),
                                          u"an order with a fault can't run; move the op back, or undo"_s);
        return;
    }
    const QString base = orderName(source->run->info);
    const QString mark = u" (edited)"_s;
    const QString name = base.endsWith(mark) ? base : base + mark; // the run has the file's name
    const QString edited = writtenOrder(editor.schedule(), name);
    if (edited.isEmpty()) return;
    Setup setup = setupOf(*source->run);
    setup.schedules = {edited.toStdString()};
    if (ModelNumbers model = ModelNumbers::of(setup); model.layers < editor.schedule().stages) { // it never ran
        model.layers = editor.schedule().stages;
        setup.model = model.text();
        setup.stageLayers.clear();
    }
    const bool stored = !m_workspace.library()->isSimulated(source->ref.file);
    const QString under = conditionsOf(setup);
    m_workspace.room().tell(
        u"Recording the edited order as %1%2%3"_s.arg(
            runTitle(source->run->info), under.isEmpty() ? QString() : u", %1"_s.arg(under),
            stored ? u"; it is added to %1"_s.arg(QFileInfo(source->ref.file).fileName()) : QString()),
        8000);
    if (stored) {
        m_compareAfter = source->ref;
        startRecording(setup, source->ref.file, false);
        keepPrediction();
        return;
    }
    // A schedule that never ran has no measured run to compare with: the original is recorded too, alternating by step.
    m_compareAfter = {};
    if (editor.changed()) {
        const auto original = scheduleOfRun(*source->run);
        const QString baseline = original ? writtenOrder(*original, base) : QString();
        if (!baseline.isEmpty()) setup.schedules.insert(setup.schedules.begin(), baseline.toStdString());
    }
    startRecording(setup, newRecordingPath(name.chopped(mark.size()) + u"-edited"_s), true);
    keepPrediction();
}

// Keeps what the run will be compared with: the order being recorded and, with measured costs, its prediction.
void RecordController::keepPrediction()
{
    if (!m_process->running()) return;
    const ScheduleEditor& editor = m_workspace.feature<OrderEditing>()->editor();
    m_recorded = editor.schedule();
    if (editor.costs().source != CostSource::Fitted) return;
    auto run = simulatedRun(editor.schedule(), editor.costs(), editor.channels());
    if (run) m_predicted = std::move(*run);
}

std::vector<ShowEntry> RecordController::showTable()
{
    return {
        {.name = "record",
         .at = 10,
         .dialog =
             [](const ShowRequest& request) {
                 return ShownDialog{request.workspace.feature<Recording>()->openRecordDialog()};
             }},
    };
}

FeatureEntry recordFeature() { return featureEntry<RecordController>(); }

} // namespace stagewright
