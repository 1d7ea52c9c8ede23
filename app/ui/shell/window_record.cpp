// Recording: the dialog, the child process, the live timeline, and adding its runs to a file.
#include <QDateTime>
#include <QDir>
#include <QFile>
#include <QFileInfo>
#include <QMessageBox>
#include <QPushButton>
#include <QSettings>
#include <QStandardPaths>
#include <QStatusBar>

#include "app/ui/compare/compare_controller.h"
#include "app/ui/edit/edit_controller.h"
#include "app/ui/shell/banner.h"
#include "app/ui/shell/main_window.h"
#include "app/ui/shell/window_set.h"
#include "traces/store/run_file.h"
#include "widgets/background.h"
#include "widgets/record/record_dialog.h"

namespace stagewright {
namespace {

// The last settings as a plain list of values: the content of the form, nothing about the machine.
void saveSettings(const RecordSettings& s)
{
    QSettings store;
    store.beginGroup(QStringLiteral("record"));
    store.setValue(QStringLiteral("schedules"), s.schedules);
    store.setValue(QStringLiteral("shape"), QVariantList{s.ranks, s.microbatches, s.chunks, s.microbatchSize});
    store.setValue(QStringLiteral("model"), QVariantList{s.layers, s.hidden, s.heads, s.sequence});
    store.setValue(QStringLiteral("run"), QVariantList{s.steps, s.warmup});
    store.setValue(QStringLiteral("clock"), s.clock);
    store.setValue(QStringLiteral("device"), QStringList{s.backend, s.devices, s.precision, s.sharing, s.transport});
    store.setValue(QStringLiteral("link"), s.link);
    store.setValue(QStringLiteral("data"), s.dataFile);
    store.setValue(QStringLiteral("seed"), s.seed);
}

RecordSettings loadSettings()
{
    RecordSettings s;
    QSettings store;
    store.beginGroup(QStringLiteral("record"));
    const QStringList schedules = store.value(QStringLiteral("schedules")).toStringList();
    if (!schedules.isEmpty()) s.schedules = schedules;
    const QVariantList shape = store.value(QStringLiteral("shape")).toList();
    if (shape.size() == 4) {
        s.ranks = shape[0].toInt();
        s.microbatches = shape[1].toInt();
        s.chunks = shape[2].toInt();
        s.microbatchSize = shape[3].toInt();
    }
    const QVariantList model = store.value(QStringLiteral("model")).toList();
    if (model.size() == 4) {
        s.layers = model[0].toInt();
        s.hidden = model[1].toInt();
        s.heads = model[2].toInt();
        s.sequence = model[3].toInt();
    }
    const QVariantList run = store.value(QStringLiteral("run")).toList();
    if (run.size() == 2) {
        s.steps = run[0].toInt();
        s.warmup = run[1].toInt();
    }
    s.clock = store.value(QStringLiteral("clock")).toString();
    const QStringList device = store.value(QStringLiteral("device")).toStringList();
    if (device.size() == 5) {
        s.backend = device[0];
        s.devices = device[1];
        s.precision = device[2];
        s.sharing = device[3];
        s.transport = device[4];
    }
    s.link = store.value(QStringLiteral("link")).toString();
    s.dataFile = store.value(QStringLiteral("data")).toString();
    s.seed = store.value(QStringLiteral("seed"), 1).toULongLong();
    return s;
}

// The path, or one with a number if the file exists.
QString freePath(const QString& path)
{
    const QFileInfo info(path);
    QString free = path;
    for (int number = 2; QFileInfo::exists(free); ++number)
        free = info.path() + QLatin1Char('/') + info.completeBaseName() + QStringLiteral("-%1.").arg(number) + info.suffix();
    return free;
}

} // namespace

QString MainWindow::newRecordingPath(const QString& name) const
{
    QString folder = QStandardPaths::writableLocation(QStandardPaths::DocumentsLocation);
    if (!QFileInfo(folder).isDir() || !QFileInfo(folder).isWritable()) folder = QDir::homePath();
    return freePath(folder + QLatin1Char('/') + name + QDateTime::currentDateTime().toString(QStringLiteral("-yyyyMMdd-HHmmss")) + QStringLiteral(".stagewright"));
}

RecordDialog* MainWindow::openRecordDialog()
{
    if (auto* open = findChild<RecordDialog*>(); open && open->isVisible()) { // not one that has been closed just now
        open->raise();
        return open;
    }
    auto* dialog = new RecordDialog(this);
    dialog->setAttribute(Qt::WA_DeleteOnClose);
    dialog->setProgram(findStagewright());
    QStringList targets;
    if (m_shown && !m_library->isSimulated(m_shown->ref.file)) targets << m_shown->ref.file;
    for (const QString& file : runs()->files())
        if (!m_library->isSimulated(file) && !targets.contains(file)) targets << file;
    askDevices(findStagewright(), dialog, [dialog](const QVector<TrainingDevice>& devices) { dialog->setDevices(devices); });
    dialog->setSettings(loadSettings());
    dialog->setTargets(targets, newRecordingPath(QStringLiteral("recording")));
    connect(dialog, &QDialog::accepted, this, [this, dialog] {
        const RecordSettings settings = dialog->settings();
        saveSettings(settings);
        m_compareAfter = {};
        startRecording(settings, dialog->targetFile(), dialog->targetIsNew());
    });
    dialog->open();
    return dialog;
}

void MainWindow::startRecording(const RecordSettings& settings, const QString& target, bool targetIsNew)
{
    if (m_process->running()) return;
    m_recorded.reset();
    m_predicted.reset();
    const QString program = findStagewright();
    if (program.isEmpty()) {
        m_banner->showError(tr("the program stagewright was not found"), tr("put it beside this program or on PATH, or set STAGEWRIGHT_PROGRAM"));
        return;
    }
    m_banner->clear();
    m_recordTarget = RunLibrary::normalised(targetIsNew ? freePath(target) : target);
    m_recordFile = targetIsNew ? m_recordTarget : m_scratch.filePath(QStringLiteral("recording-%1.stagewright").arg(++m_recordCount));
    QFile::remove(m_recordFile);
    m_followLive = m_mode != Mode::Edit;
    m_looking = false;
    m_look.invalidate();
    m_process->start(program, settings, m_recordFile);
    m_poll.start();
    refreshActions();
}

// A read costs a list of the runs, and the newest step if there is one. The next read waits ten times as long as the
// last one took, so that watching never takes more than 10 % of the time.
bool MainWindow::isRecordingInto(const QString& file) const
{
    return (m_process->running() || m_library->busy()) && (file == m_recordFile || file == m_recordTarget);
}

void MainWindow::pollRecording()
{
    if (!m_process->running() || m_process->runs().isEmpty() || !QFileInfo::exists(m_recordFile)) return;
    if (m_looking || (m_look.isValid() && m_look.elapsed() < m_lookPause)) return;
    m_looking = true;
    m_look.start();
    m_lookPause = 0;
    m_library->open(m_recordFile);
}

void MainWindow::followRecording(const std::vector<RunRef>& refs)
{
    auto looked = [this] {
        m_looking = false;
        m_lookPause = 10 * m_look.elapsed();
    };
    const RunInfo* newest = nullptr;
    RunRef ref;
    for (const RunRef& one : refs)
        if (const RunInfo* info = runs()->info(one); info != nullptr && info->steps > 0) {
            newest = info;
            ref = one;
        }
    const bool shown = m_shown && m_shown->ref == ref && m_mode == Mode::Run;
    // A selection or a zoomed view keeps its step; otherwise the newest step is shown.
    const bool held = shown && (m_state->selected().valid() || !m_state->areas().empty() || !m_state->isFitted());
    if (!m_followLive || newest == nullptr || held || (shown && m_shown->run->info.steps == newest->steps)) {
        looked();
        return;
    }
    const quint64 generation = m_generation;
    m_library->requestNewest(ref, newest->steps - 1, [this, generation, looked](Result<std::shared_ptr<const RunView>> view) {
        looked();
        if (generation != m_generation || !m_followLive || !m_process->running() || !view) return;
        present(*view, true);
    });
}

bool MainWindow::isScratch(const QString& file) const
{
    return file.startsWith(QDir::cleanPath(m_scratch.path()) + QLatin1Char('/'));
}

std::pair<QString, QString> MainWindow::recordingFiles() const
{
    if (!m_process->running() && !m_taking) return {};
    return {m_recordFile, m_recordTarget};
}

void MainWindow::askToStop()
{
    if (m_stopQuestion) {
        m_stopQuestion->raise();
        return;
    }
    m_stopQuestion = new QMessageBox(QMessageBox::Question, windowTitle(), tr("A recording is running."), QMessageBox::NoButton, this);
    m_stopQuestion->setObjectName(QStringLiteral("stopRecording"));
    m_stopQuestion->setAttribute(Qt::WA_DeleteOnClose);
    m_stopQuestion->setInformativeText(tr("If you stop it, runs with a complete measured step are kept in %1.").arg(QDir::toNativeSeparators(m_recordTarget)));
    m_stopQuestion->addButton(tr("Stop and close"), QMessageBox::AcceptRole);
    QPushButton* stay = m_stopQuestion->addButton(tr("Keep recording"), QMessageBox::RejectRole);
    m_stopQuestion->setDefaultButton(stay);
    m_stopQuestion->setEscapeButton(stay);
    connect(m_stopQuestion, &QMessageBox::finished, this, [this, box = m_stopQuestion.data()] {
        if (box->buttonRole(box->clickedButton()) != QMessageBox::AcceptRole) {
            WindowSet::instance().stay();
            return;
        }
        m_closeAfter = true;
        m_process->cancel();
    });
    m_stopQuestion->open();
}

void MainWindow::recordingTaken()
{
    m_taking = false;
    refreshStatus();
    if (!std::exchange(m_closeAfter, false)) return;
    QTimer::singleShot(0, this, [this] {
        if (WindowSet::instance().quitting())
            WindowSet::instance().quit();
        else
            close();
    });
}

void MainWindow::recordingEnded()
{
    m_poll.stop();
    m_taking = true;
    if (m_stopQuestion && !m_closeAfter) m_stopQuestion->reject(); // it ended by itself: there is nothing to ask
    refreshActions();
    if (m_process->state() == RecordProcess::State::Failed) m_banner->showError(m_process->errorMessage(), m_process->errorRemedy());
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
            auto infos = (*file)->runs();
            if (!infos) return tl::unexpected(infos.error());
            return !infos->empty();
        },
        [this](Result<bool> any) {
            if (any && *any)
                adoptRecording(m_recordFile);
            else
                dropRecording(m_recordFile);
        });
}

// What a stopped recording leaves, as a sentence.
QString MainWindow::stoppedText(std::size_t runs) const
{
    const QString what = m_process->state() == RecordProcess::State::Cancelled ? tr("The recording was cancelled") : tr("The recording ended early");
    if (runs == 0) return tr("%1 before a measured step was complete; nothing was kept.").arg(what);
    const QString place = QDir::toNativeSeparators(m_recordTarget);
    return runs == 1 ? tr("%1; the complete steps of 1 run are kept in %2.").arg(what, place) : tr("%1; the complete steps of %3 runs are kept in %2.").arg(what, place, QString::number(runs));
}

void MainWindow::dropRecording(const QString& file)
{
    RunRef back = std::exchange(m_compareAfter, RunRef{});
    m_recorded.reset();
    m_library->close(file);
    if (m_shown && m_shown->ref.file == file) { // its steps are gone: shows an existing run, from its target file if possible
        setMode(Mode::Empty);
        const auto listed = runs()->refs();
        for (const RunRef& ref : listed)
            if (!back.valid() && ref.file == m_recordTarget) back = ref;
        if (!back.valid() && !listed.empty()) back = listed.front();
        if (runs()->info(back) != nullptr) showRun(back);
    }
    if (isScratch(file)) QFile::remove(file);
    if (m_process->state() == RecordProcess::State::Cancelled) m_banner->showNote(stoppedText(0));
    recordingTaken();
}

void MainWindow::showRecorded(const QString& path, const std::vector<RunRef>& fresh)
{
    const RunRef original = m_compareAfter;
    const auto state = m_process->state();
    const bool completed = state == RecordProcess::State::Finished;
    m_compareAfter = {};
    const QString place = QDir::toNativeSeparators(path);
    const QString what = fresh.size() == 1 ? tr("Recorded a run into %1").arg(place) : tr("Recorded %2 runs into %1").arg(place, QString::number(fresh.size()));
    if (state == RecordProcess::State::Cancelled)
        m_banner->showNote(stoppedText(fresh.size()));
    else if (completed && m_recordFile == m_recordTarget) // a file the user may not know of yet
        m_banner->showNote(what);
    else
        statusBar()->showMessage(completed ? what : stoppedText(fresh.size()), 8000);
    if (original.valid() && completed && m_predicted) {
        m_predicted->info.name = tr("%1, predicted").arg(runTitle(*runs()->info(fresh.back()))).toStdString();
        const RunRef predicted = m_library->addSimulated(std::move(*m_predicted));
        m_compare->showPredicted(original, predicted, fresh.back());
    } else if (original.valid() && completed)
        showCompare(original, fresh.back());
    else if (fresh.size() == 2 && completed)
        showCompare(fresh[0], fresh[1]);
    else
        showRun(fresh.front());
    m_predicted.reset();
}

void MainWindow::adoptRecording(const QString& file)
{
    if (m_recorded) m_edit->recorded(*m_recorded); // kept only now: a failed recording leaves nothing
    m_recorded.reset();
    auto show = [this](const QString& path, const std::vector<qint64>& ids) {
        // Listed first, so that the new runs are in the list when they are shown.
        auto once = std::make_shared<QMetaObject::Connection>();
        *once = connect(m_library, &RunLibrary::listed, this, [=, this](const QString& listedPath, const std::vector<RunRef>& refs) {
            if (listedPath != path) return;
            disconnect(*once);
            std::vector<RunRef> fresh;
            for (const RunRef& ref : refs)
                if (ids.empty() || std::find(ids.begin(), ids.end(), ref.id) != ids.end()) fresh.push_back(ref);
            if (!fresh.empty()) showRecorded(path, fresh);
            recordingTaken();
        });
        remember(path);
        m_library->open(path);
    };
    if (file == m_recordTarget) {
        show(file, {});
        return;
    }
    m_library->adopt(m_recordTarget, file, [this, file, show](Result<std::vector<qint64>> ids) {
        if (!ids) {
            // Moved out of the temporary folder, which is deleted with the window.
            const QString kept = newRecordingPath(QFileInfo(m_recordTarget).completeBaseName());
            const QString place = QFile::copy(file, kept) ? kept : file;
            m_banner->showError(tr("the runs could not be added to %1; they are in %2").arg(m_recordTarget, place), ids.error());
            if (place == kept)
                show(kept, {});
            else
                recordingTaken();
            return;
        }
        if (m_shown && m_shown->ref.file == file) m_shown.reset();
        m_library->close(file);
        QFile::remove(file);
        show(m_recordTarget, *ids);
    });
}

void MainWindow::takeUpRecording(const QString& file, const QString& target)
{
    m_library->adopt(target, file, [this, file, target](const Result<std::vector<qint64>>& ids) {
        if (!ids) return; // still being written by another window, or unreadable
        QFile::remove(file);
        QDir().rmdir(QFileInfo(file).path()); // the folder of the window that ended
        if (ids->empty()) return;
        const QString place = QDir::toNativeSeparators(target);
        m_banner->showNote(ids->size() == 1 ? tr("The window ended during a recording; the complete steps of 1 run are kept in %1.").arg(place)
                                            : tr("The window ended during a recording; the complete steps of %2 runs are kept in %1.").arg(place, QString::number(ids->size())));
        m_library->open(target);
    });
}

} // namespace stagewright
