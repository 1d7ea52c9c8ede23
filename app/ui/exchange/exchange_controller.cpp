#include "app/ui/exchange/exchange_controller.h"

#include <atomic>

#include <QDir>
#include <QFileDialog>
#include <QFileInfo>
#include <QStatusBar>

#include "app/ui/workspace/banner.h"
#include "app/ui/workspace/offers.h"
#include "app/ui/workspace/workspace.h"
#include "schedules/text/csv.h"
#include "schedules/text/pytorch.h"
#include "traces/export/chrome_json.h"
#include "traces/export/kineto_writer.h"
#include "traces/export/perfetto.h"
#include "traces/export/torchtitan.h"
#include "traces/format/atomic_file.h"
#include "widgets/background.h"
#include "widgets/edit/schedule_editor.h"
#include "widgets/numbers.h"

namespace stagewright {
namespace {

using Kind = ExchangeController::Kind;

constexpr qint64 silentMs = 400; // ms without a progress message

bool ofSchedule(Kind kind) { return kind != Kind::Perfetto && kind != Kind::Chrome && kind != Kind::Kineto; }

// The files of a schedule by name; a single file has none.
Result<std::vector<std::pair<std::string, std::string>>> filesOf(Kind kind, const Schedule& schedule, const std::string& source)
{
    if (kind == Kind::TorchTitan) return torchTitanFolder(schedule, source);
    if (kind == Kind::Csv) {
        auto text = writeScheduleCsv(schedule);
        if (!text) return tl::unexpected(std::move(text.error()));
        return std::vector<std::pair<std::string, std::string>>{{"", std::move(*text)}};
    }
    auto forms = pytorchForms(schedule);
    if (!forms) return tl::unexpected(std::move(forms.error()));
    return std::vector<std::pair<std::string, std::string>>{{"", std::move(kind == Kind::PyTorch ? forms->computeOnly : forms->withMessages)}};
}

Result<QString> writeSchedule(Kind kind, const Schedule& schedule, const QString& path, const std::string& source)
{
    auto files = filesOf(kind, schedule, source);
    if (!files) return tl::unexpected(std::move(files.error()));
    const auto done = kind == Kind::TorchTitan ? writeTorchTitanFolder(*files, path.toStdString()) : writeFileAtomically(path.toStdString(), files->front().second);
    if (!done) return tl::unexpected(done.error());
    return ExchangeController::tr("%1, %2").arg(countText(schedule.ranks, ExchangeController::tr("1 rank"), ExchangeController::tr("%L1 ranks")), countText(static_cast<qint64>(schedule.opCount()), ExchangeController::tr("1 op"), ExchangeController::tr("%L1 ops")));
}

Result<QString> writeTrace(Kind kind, const Run& run, const QString& path, const Progress& progress)
{
    if (kind == Kind::Kineto) {
        auto counts = writeKinetoFolder(run, path.toStdString(), progress);
        if (!counts) return tl::unexpected(std::move(counts.error()));
        return ExchangeController::tr("%1, %2").arg(countText(counts->ranks, ExchangeController::tr("1 rank"), ExchangeController::tr("%L1 ranks")), countText(static_cast<qint64>(counts->spans), ExchangeController::tr("1 span"), ExchangeController::tr("%L1 spans")));
    }
    auto counts = (kind == Kind::Chrome ? writeChromeJsonFile : writePerfettoFile)(run, path.toStdString(), progress);
    if (!counts) return tl::unexpected(std::move(counts.error()));
    return ExchangeController::tr("%L1 spans, %L2 flows, %L3 counter samples").arg(counts->spans).arg(counts->flows).arg(counts->counterSamples);
}

QString suggested(const RunView& view, const QString& suffix)
{
    QString name = QString::fromStdString(view.run->info.name);
    name.replace(QLatin1Char('/'), QLatin1Char('-'));
    const QString folder = view.ref.file.startsWith(QLatin1String("sim:")) ? QString() : QFileInfo(view.ref.file).absolutePath() + QLatin1Char('/');
    return folder + name + suffix;
}

std::string sourceOf(const RunView& view)
{
    if (view.ref.file.startsWith(QLatin1String("sim:"))) return "a run that is not saved";
    return QFileInfo(view.ref.file).fileName().toStdString() + ", run " + std::to_string(view.ref.id);
}

} // namespace

struct ExchangeController::Cell {
    std::atomic<std::int64_t> done = 0;
    std::atomic<std::int64_t> total = 0;
};

ExchangeController::ExchangeController(Workspace& workspace) : Feature(workspace)
{
    connect(&workspace, &Workspace::actionsRefreshed, this, [this] {
        using I = ActionId;
        const Shown& shown = m_workspace.shown();
        Actions& actions = m_workspace.actions();
        for (const I id : {I::ExportCsv, I::ExportPyTorch, I::ExportTorchTitan}) actions[id]->setEnabled(shown.mode() != Shown::Mode::Empty);
        for (const I id : {I::ExportChrome, I::ExportKineto}) // of a growing run only the newest step is here
            actions[id]->setEnabled(shown.mode() != Shown::Mode::Empty && shown.view() && !shown.view()->partial);
    });
    const auto on = [&](ActionId id, auto slot) { connect(workspace.actions()[id], &QAction::triggered, this, slot); };
    on(ActionId::ExportChrome, [this] { askTrace(); });
    on(ActionId::ExportKineto, [this] { askKineto(); });
    on(ActionId::ExportPyTorch, [this] { askSchedule(Kind::PyTorch); });
    on(ActionId::ExportTorchTitan, [this] { askSchedule(Kind::TorchTitan); });
    on(ActionId::ExportCsv, [this] { askSchedule(Kind::Csv); });
    m_poll.setInterval(150);
    connect(&m_poll, &QTimer::timeout, this, &ExchangeController::poll);
}

ExchangeController::~ExchangeController() { cancel(); }

void ExchangeController::cancel()
{
    if (m_stop) m_stop->request_stop();
}

// Not application modal; a folder is entered as a new name.
void ExchangeController::askPlace(const QString& title, const QString& suggestion, const QString& filters, std::function<void(const QString& path, int filter)> then)
{
    auto* dialog = new QFileDialog(m_workspace.window(), title, QFileInfo(suggestion).path(), filters);
    dialog->setObjectName(QStringLiteral("exportTo"));
    dialog->setAttribute(Qt::WA_DeleteOnClose);
    dialog->setAcceptMode(QFileDialog::AcceptSave);
    dialog->selectFile(QFileInfo(suggestion).fileName());
    connect(dialog, &QFileDialog::fileSelected, this, [dialog, then = std::move(then)](const QString& path) {
        const auto filter = dialog->nameFilters().indexOf(dialog->selectedNameFilter());
        if (!path.isEmpty()) then(path, static_cast<int>(filter));
    });
    dialog->open();
}

void ExchangeController::askTrace()
{
    const auto shown = m_workspace.shown().view();
    if (!shown) return;
    askPlace(tr("Export a trace"), suggested(*shown, QStringLiteral(".pftrace")), tr("Perfetto trace (*.pftrace *.perfetto-trace);;Chrome JSON (*.json)"), [this](QString path, int filter) {
        if (QFileInfo(path).suffix().isEmpty()) path += filter == 1 ? QStringLiteral(".json") : QStringLiteral(".pftrace");
        write(path.endsWith(QStringLiteral(".json"), Qt::CaseInsensitive) ? Kind::Chrome : Kind::Perfetto, path);
    });
}

void ExchangeController::askKineto()
{
    const auto shown = m_workspace.shown().view();
    if (!shown) return;
    askPlace(tr("Export PyTorch profiler traces into a new folder"), suggested(*shown, tr(" traces")), tr("Folders (*)"), [this](const QString& path, int) { write(Kind::Kineto, path); });
}

void ExchangeController::askSchedule(Kind kind)
{
    const auto shown = m_workspace.shown().view();
    if (!shown || m_stop) return;
    const bool edited = m_workspace.shown().mode() == Shown::Mode::Edit;
    std::optional<Schedule> order;
    if (edited) order = m_workspace.feature<OrderEditing>()->editor().schedule();
    m_stop.emplace();
    inBackground(
        this,
        [kind, order, run = shown->run]() -> Result<void> { // what can't be expressed is reported first
            auto schedule = order ? Result<Schedule>(*order) : scheduleOfRun(*run);
            if (!schedule) return tl::unexpected(std::move(schedule.error()));
            if (auto files = filesOf(kind, *schedule, {}); !files) return tl::unexpected(std::move(files.error()));
            return {};
        },
        [this, kind, edited, shown](Result<void> can) {
            m_stop.reset();
            if (!can) return m_workspace.banner()->showRefusal(tr("could not export"), can.error());
            const QString name = edited ? QStringLiteral(".edited") : QString();
            if (kind == Kind::TorchTitan)
                return askPlace(tr("Export for TorchTitan into a new folder"), suggested(*shown, name + tr(" torchtitan")), tr("Folders (*)"), [this](const QString& path, int) { write(Kind::TorchTitan, path); });
            const QString filters = kind == Kind::Csv ? tr("Schedule CSV (*.csv)") : tr("Ops only, for _load_csv and TorchTitan (*.csv);;With sends and receives, format=\"compute_comms\" (*.csv)");
            askPlace(kind == Kind::Csv ? tr("Export the schedule") : tr("Export the schedule for PyTorch"), suggested(*shown, name + QStringLiteral(".csv")), filters, [this, kind](QString path, int filter) {
                if (QFileInfo(path).suffix().isEmpty()) path += QStringLiteral(".csv");
                write(kind == Kind::PyTorch && filter == 1 ? Kind::PyTorchMessages : kind, path);
            });
        });
}

void ExchangeController::write(Kind kind, const QString& path)
{
    const auto shown = m_workspace.shown().view();
    if (!shown) return;
    if (m_stop) return m_workspace.banner()->showRefusal(tr("%1 is being written").arg(m_path), tr("wait for it, or cancel it"));
    const bool edited = m_workspace.shown().mode() == Shown::Mode::Edit;
    std::optional<Schedule> order;
    if (edited) order = m_workspace.feature<OrderEditing>()->editor().schedule();
    m_stop.emplace();
    m_cell = std::make_shared<Cell>();
    m_path = path;
    m_told.clear();
    Progress progress;
    progress.stop = m_stop->get_token();
    progress.report = [cell = m_cell](std::string_view, std::int64_t done, std::int64_t total) {
        cell->total = total;
        cell->done = done;
    };
    m_since.start();
    m_poll.start();
    inBackground(
        this,
        [kind, path, order, run = shown->run, source = edited ? std::string("an edited order") : sourceOf(*shown), progress]() -> Result<Written> {
            Result<QString> sentence = QString();
            if (ofSchedule(kind)) {
                auto schedule = order ? Result<Schedule>(*order) : scheduleOfRun(*run);
                sentence = schedule ? writeSchedule(kind, *schedule, path, source) : Result<QString>(tl::unexpected(schedule.error()));
            } else {
                sentence = writeTrace(kind, *run, path, progress);
            }
            if (!sentence) return tl::unexpected(std::move(sentence.error()));
            return Written{path, *sentence};
        },
        [this, edited = edited && kind == Kind::Csv](Result<Written> written) { ended(written, edited); });
}

void ExchangeController::poll()
{
    if (!m_stop || m_since.elapsed() < silentMs) return;
    const std::int64_t total = m_cell->total, done = m_cell->done;
    const QString name = QFileInfo(m_path).fileName();
    const QString text = total > 0 ? tr("Writing %1: %2 %").arg(name, QString::number(100 * done / total)) : tr("Writing %1").arg(name);
    if (m_told.isEmpty()) {
        m_workspace.banner()->showQuestion(text, {}, tr("Cancel"), [this] { cancel(); });
        m_workspace.banner()->setAbout([] { return true; }); // the file is being written whatever is shown
    } else if (m_workspace.banner()->text() == m_told)       // otherwise it shows something else by now
        m_workspace.banner()->setMessage(text);
    else
        return;
    m_told = m_workspace.banner()->text();
}

void ExchangeController::ended(const Result<Written>& written, bool edited)
{
    m_poll.stop();
    m_stop.reset();
    if (!m_told.isEmpty() && m_workspace.banner()->text() == m_told) m_workspace.banner()->clear();
    m_told.clear();
    if (written) {
        if (edited && m_workspace.shown().mode() == Shown::Mode::Edit) m_workspace.feature<OrderEditing>()->saved();
        m_workspace.room().tell(tr("Wrote %1: %2").arg(QDir::toNativeSeparators(written->path), written->sentence), 8000);
    } else if (written.error().code == ErrorCode::Cancelled) {
        m_workspace.room().tell(tr("Cancelled; %1 was not written").arg(m_path), 8000);
    } else {
        m_workspace.banner()->showError(tr("could not export"), written.error());
    }
}

Feature* exchangeFeature(Workspace& workspace) { return new ExchangeController(workspace); }

} // namespace stagewright
