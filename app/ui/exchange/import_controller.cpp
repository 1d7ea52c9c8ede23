
#include "app/ui/exchange/import_controller.h"

#include <memory>

#include <QDir>
#include <QStatusBar>

#include "app/ui/workspace/banner.h"
#include "app/ui/workspace/offers.h"
#include "app/ui/workspace/workspace.h"
#include "traces/store/add_runs.h"
#include "widgets/background.h"
#include "widgets/literals.h"

namespace stagewright {

Result<std::vector<qint64>> storeImported(const ImportReading& reading, const std::vector<std::size_t>& chosen,
                                          const QString& target, const Progress& progress)
{
    std::vector<const Run*> runs;
    runs.reserve(chosen.size());
    for (const std::size_t run : chosen) runs.push_back(&reading.result.runs[run].run);
    STAGEWRIGHT_TRY(auto ids, addRuns(target.toStdString(), runs, progress));
    return std::vector<qint64>(ids.begin(), ids.end());
}

std::vector<ActionEntry> ImportController::actionTable()
{
    return {
        item(
            "importTraces", ActionGroup::FileOpen, u"&Import traces…"_s, "Ctrl+I",
            u"Imports traces of PyTorch's profiler, Perfetto, Nsight Systems or Chrome as runs and recognises their schedules"_s,
            {.button = u"Import…"_s}),
    };
}

ImportController::ImportController(Workspace& workspace) : Feature(workspace)
{
    connect(workspace.actions()["importTraces"], &QAction::triggered, this, [this] { open(); });
    connect(&workspace.shown(), &Shown::runShown, this, &ImportController::makeOffer);
    connect(workspace.library(), &RunLibrary::failed, this, [this](const QString& path) {
        if (m_offer && m_offer->ref.file == path) m_offer.reset();
    });
}

ImportController::~ImportController()
{
    if (m_stop) m_stop->request_stop();
}

ImportDialog* ImportController::open(const QStringList& traces, const QString& rulesFile)
{
    if (!m_dialog) {
        m_dialog = new ImportDialog(m_workspace.window());
        m_dialog->setAttribute(Qt::WA_DeleteOnClose);
        connect(m_dialog, &ImportDialog::importAsked, this, &ImportController::store);
        connect(m_dialog, &ImportDialog::storingCancelled, this, [this] {
            if (m_stop) m_stop->request_stop();
        });
        connect(m_dialog, &ImportDialog::openAsked, this,
                [this](const QStringList& paths) { m_workspace.feature<FileOpening>()->openFiles(paths); });
        m_dialog->open();
    }
    if (!rulesFile.isEmpty() && !m_dialog->storing()) m_dialog->setRulesFile(rulesFile);
    if (!traces.isEmpty() && !m_dialog->storing()) m_dialog->setTraces(traces);
    m_dialog->raise();
    return m_dialog;
}

void ImportController::store()
{
    const auto reading = m_dialog->reading();
    const auto chosen = m_dialog->chosen();
    if (!reading || chosen.empty() || m_stop) return;
    const QString target = RunLibrary::normalised(m_dialog->target());
    const ImportedRun& first = reading->result.runs[chosen.front()];
    const RunInfo& info = first.run.info;
    Offer offer;
    const QString schedule = first.recognised.empty() ? u"a custom order"_s : scheduleTitle(first.recognised);
    if (first.run.schedule && info.provenance != Provenance::Simulated) {
        offer.message = u"Read %1 as %2, %3 ranks and %4 microbatches"_s.arg(QString::fromStdString(info.name),
                                                                             schedule, QString::number(info.ranks),
                                                                             QString::number(info.microbatches));
        offer.remedy = u"its plan is the same order, simulated with costs fitted from the run"_s;
        offer.plan = true;
    } else if (!first.run.schedule) {
        offer.message = u"Imported %1 without a schedule: %2"_s.arg(
            QString::fromStdString(info.name),
            first.notRebuilt.empty() ? u"no range is named like an op"_s : QString::fromStdString(first.notRebuilt));
        offer.remedy = u"its lanes can be seen; a pipeline of its ranges names the ops"_s;
        offer.mapper = true;
    }
    m_stop.emplace();
    m_dialog->setStoring(true);
    Progress progress;
    progress.stop = m_stop->get_token();
    inBackground(
        this, [reading, chosen, target, progress] { return storeImported(*reading, chosen, target, progress); },
        [this, target, offer](Result<std::vector<qint64>> ids) {
            m_stop.reset();
            if (m_dialog) m_dialog->setStoring(false);
            if (!ids) {
                if (ids.error().code == ErrorCode::Cancelled) {
                    m_workspace.room().tell(u"Import cancelled; nothing was stored"_s, 6000);
                    if (m_dialog) m_dialog->reject();
                } else if (m_dialog) {
                    m_dialog->showFault(ids.error());
                } else {
                    m_workspace.banner()->showError(u"could not import"_s, ids.error());
                }
                return;
            }
            if (m_dialog) m_dialog->accept();
            show(target, *ids, offer);
        });
}

void ImportController::show(const QString& target, const std::vector<qint64>& ids, Offer offer)
{
    if (ids.empty()) return;
    offer.ref = {target, ids.front()};
    m_offer = offer;
    // Listed first, so that the new runs are in the list when they are shown.
    auto once = std::make_shared<QMetaObject::Connection>();
    *once =
        connect(m_workspace.library(), &RunLibrary::listed, this, [this, once, ref = offer.ref](const QString& path) {
            if (path != ref.file) return;
            disconnect(*once);
            m_workspace.shown().showRun(ref);
        });
    emit m_workspace.library()->wrote(target);
    m_workspace.feature<FileOpening>()->openFiles({target});
    const QString place = QDir::toNativeSeparators(target);
    m_workspace.room().tell(ids.size() == 1 ? u"Imported a run into %1"_s.arg(place)
                                            : u"Imported %2 runs into %1"_s.arg(place, QString::number(ids.size())),
                            8000);
}

void ImportController::makeOffer()
{
    if (!m_offer || m_workspace.shown().mode() != Shown::Mode::Run || !(m_workspace.shown().ref() == m_offer->ref))
        return;
    const Offer offer = *m_offer;
    m_offer.reset();
    if (offer.plan)
        m_workspace.banner()->showQuestion(
            offer.message, offer.remedy, u"Compare with the plan"_s,
            [this, ref = offer.ref] { m_workspace.feature<PlanComparing>()->compareWithPlan(ref); });
    else if (offer.mapper)
        m_workspace.banner()->showQuestion(offer.message, offer.remedy, u"Make a pipeline of ranges"_s,
                                           [this] { m_workspace.actions()["mapper"]->trigger(); });
    else if (!offer.message.isEmpty())
        m_workspace.banner()->showNote(offer.message + u"; "_s + offer.remedy);
}

namespace {

ShownDialog showImport(const ShowRequest& request)
{
    ImportDialog* dialog = request.workspace.feature<ImportController>()->open();
    if (!request.wait([&] { return dialog->settled(); }, 300000)) return {nullptr, u"reading the traces timed out"_s};
    return {dialog};
}

} // namespace

std::vector<ShowEntry> ImportController::showTable()
{
    return {
        {.name = "import", .at = 280, .dialog = &showImport},
    };
}

FeatureEntry importFeature() { return featureEntry<ImportController>(); }

} // namespace stagewright
