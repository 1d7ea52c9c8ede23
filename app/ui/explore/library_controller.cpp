#include "app/ui/explore/library_controller.h"

#include "app/ui/workspace/workspace.h"
#include "traces/run/simulated_run.h"
#include "widgets/library/block_editor.h"
#include "widgets/library/schedule_browser.h"
#include "widgets/literals.h"
#include "widgets/record/record_dialog.h"
#include "widgets/record/record_setup.h"

namespace stagewright {

std::vector<ActionEntry> LibraryController::actionTable()
{
    return {
        item("newSchedule", ActionGroup::ScheduleEdit, u"&New from library…"_s, "Ctrl+N",
             u"Starts from a library schedule, timed with unit costs"_s, {.at = 0}),
        item("buildingBlock", ActionGroup::ScheduleEdit, u"&Building block…"_s, "Ctrl+Shift+B",
             u"The passes of one microbatch that V-Min, V-Half and V-ZB repeat: view them, change them, make "
             "a schedule from them"_s,
             {.at = 20}),
    };
}

LibraryController::LibraryController(Workspace& workspace) : Feature(workspace)
{
    connect(workspace.actions()["newSchedule"], &QAction::triggered, this, [this] { openScheduleBrowser(); });
    connect(workspace.actions()["buildingBlock"], &QAction::triggered, this, [this] { openBlockEditor(); });
}

void LibraryController::openBlock(const Block& block) { openBlockEditor()->setBlock(block); }

void LibraryController::newFromLibrary(const QString& name, const Shape& shape, const CostModel::UnitCosts& costs)
{
    const quint64 request = m_workspace.shown().request(true);
    inBackground(
        this,
        [name = name.toStdString(), shape, costs]() -> Result<std::shared_ptr<Run>> {
            STAGEWRIGHT_TRY(auto schedule, makeSchedule(name, withCosts(shape, costs)));
            STAGEWRIGHT_TRY(auto run, simulatedRun(schedule, CostModel::uniform(schedule, costs)));
            return std::make_shared<Run>(std::move(run));
        },
        [this, request, name, shape](Result<std::shared_ptr<Run>> run) {
            if (!m_workspace.shown().answered(request)) return;
            if (!run) {
                m_workspace.banner()->showError(QString(), run.error());
                m_workspace.refreshCaptions();
                return;
            }
            const QString title = scheduleTitle(name.toStdString());
            (*run)->info.name = u"%1 %2 × %3"_s.arg(title).arg(shape.ranks).arg(shape.microbatches).toStdString();
            m_workspace.shown().showRun(m_workspace.library()->addSimulated(std::move(**run)));
        });
}

ScheduleBrowser* LibraryController::openScheduleBrowser()
{
    if (auto* open = m_workspace.window()->findChild<ScheduleBrowser*>()) {
        open->raise();
        return open;
    }
    auto* browser = new ScheduleBrowser(m_workspace.theme(), m_workspace.window());
    browser->setAttribute(Qt::WA_DeleteOnClose);
    connect(browser, &ScheduleBrowser::createAsked, this,
            [this](const QString& name, const Shape& shape, const CostModel::UnitCosts& costs) {
                newFromLibrary(name, shape, costs);
            });
    connect(browser, &ScheduleBrowser::trainAsked, this, [this](const QString& name, const Shape& shape) {
        RecordDialog* dialog = m_workspace.feature<Recording>()->openRecordDialog();
        if (dialog == nullptr) return;
        Setup setup = dialog->setup();
        setup.schedules = {name.toStdString()};
        setup.ranks = shape.ranks;
        setup.microbatches = shape.microbatches;
        setup.chunks = shape.chunks;
        if (auto made = makeSchedule(name.toStdString(), shape)) {
            ModelNumbers model = ModelNumbers::of(setup);
            model.layers = std::max(model.layers, made->stages);
            setup.model = model.text();
        }
        dialog->setSetup(setup);
    });
    connect(browser, &ScheduleBrowser::blockAsked, this,
            [this](const QString& name, const Shape& shape) { openBlockEditor(name, shape); });
    browser->open();
    return browser;
}

BlockEditor* LibraryController::openBlockEditor(const QString& preset, const Shape& shape)
{
    if (auto* open = m_workspace.window()->findChild<BlockEditor*>()) {
        open->raise();
        return open;
    }
    auto* editor = new BlockEditor(m_workspace.theme(), m_workspace.window());
    editor->setAttribute(Qt::WA_DeleteOnClose);
    if (!preset.isEmpty()) editor->choose(preset, shape.ranks, shape.microbatches);
    connect(editor, &BlockEditor::createAsked, this, [this](const std::shared_ptr<const Schedule>& schedule) {
        auto run = simulatedRun(*schedule, CostModel::uniform(*schedule));
        if (!run) {
            m_workspace.banner()->showError(QString(), run.error());
            return;
        }
        run->info.name = u"block %1, %2 × %3"_s.arg(QString::fromStdString(schedule->name))
                             .arg(schedule->ranks)
                             .arg(schedule->microbatches)
                             .toStdString();
        m_workspace.shown().showRun(m_workspace.library()->addSimulated(std::move(*run)));
    });
    editor->open();
    return editor;
}

namespace {

ShownDialog showBrowser(const ShowRequest& request)
{
    ScheduleBrowser* browser = request.workspace.feature<LibraryController>()->openScheduleBrowser();
    if (!request.schedule.isEmpty()) browser->choose(request.schedule);
    if (!request.wait([&] { return browser->settled(); }, 60000)) return {nullptr, u"the preview timed out"_s};
    return {browser};
}

ShownDialog showBlock(const ShowRequest& request)
{
    BlockEditor* editor = request.workspace.feature<LibraryController>()->openBlockEditor(request.schedule);
    if (!request.wait([&] { return editor->settled(); }, 60000)) return {nullptr, u"the block's schedule timed out"_s};
    return {editor};
}

} // namespace

std::vector<ShowEntry> LibraryController::showTable()
{
    return {
        {.name = "new", .at = 20, .dialog = &showBrowser},
        {.name = "block", .at = 30, .dialog = &showBlock},
    };
}

FeatureEntry libraryFeature() { return featureEntry<LibraryController>(); }

} // namespace stagewright
