// Library schedules: browsing them, and opening one as a simulated run or for training.
#include "app/ui/shell/banner.h"
#include "app/ui/shell/main_window.h"
#include "traces/run/simulated_run.h"
#include "widgets/background.h"
#include "widgets/library/block_editor.h"
#include "widgets/library/schedule_browser.h"
#include "widgets/record/record_dialog.h"

namespace stagewright {

void MainWindow::newFromLibrary(const QString& name, const Shape& shape, const CostModel::UnitCosts& costs)
{
    const quint64 generation = ++m_generation;
    m_pending = true;
    refreshStatus();
    inBackground(
        this,
        [name = name.toStdString(), shape, costs]() -> Result<std::shared_ptr<Run>> {
            auto schedule = makeSchedule(name, withCosts(shape, costs));
            if (!schedule) return tl::unexpected(schedule.error());
            auto run = simulatedRun(*schedule, CostModel::uniform(*schedule, costs));
            if (!run) return tl::unexpected(run.error());
            return std::make_shared<Run>(std::move(*run));
        },
        [this, generation, name, shape](Result<std::shared_ptr<Run>> run) {
            if (generation != m_generation) return; // superseded by another request
            m_pending = false;
            if (!run) {
                m_banner->showError(QString(), run.error());
                refreshStatus();
                return;
            }
            const QString parameters = name.section(QLatin1Char(':'), 1);
            QString title = scheduleTitle(name.section(QLatin1Char(':'), 0, 0).toStdString());
            if (!parameters.isEmpty()) title += QLatin1Char(' ') + parameters;
            (*run)->info.name = tr("%1 %2 × %3").arg(title).arg(shape.ranks).arg(shape.microbatches).toStdString();
            showRun(m_library->addSimulated(std::move(**run)));
        });
}

ScheduleBrowser* MainWindow::openScheduleBrowser()
{
    if (auto* open = findChild<ScheduleBrowser*>()) {
        open->raise();
        return open;
    }
    auto* browser = new ScheduleBrowser(*m_theme, this);
    browser->setAttribute(Qt::WA_DeleteOnClose);
    connect(browser, &ScheduleBrowser::createAsked, this, [this](const QString& name, const Shape& shape, const CostModel::UnitCosts& costs) {
        newFromLibrary(name, shape, costs);
    });
    connect(browser, &ScheduleBrowser::trainAsked, this, [this](const QString& name, const Shape& shape) {
        RecordDialog* dialog = openRecordDialog();
        if (dialog == nullptr) return;
        RecordSettings settings = dialog->settings();
        settings.schedules = {name};
        settings.scheduleFile.clear();
        settings.ranks = shape.ranks;
        settings.microbatches = shape.microbatches;
        settings.chunks = shape.chunks;
        if (auto made = makeSchedule(name.toStdString(), shape)) settings.layers = std::max(settings.layers, made->stages);
        dialog->setSettings(settings);
    });
    connect(browser, &ScheduleBrowser::blockAsked, this, [this](const QString& name, const Shape& shape) { openBlockEditor(name, shape); });
    browser->open();
    return browser;
}

BlockEditor* MainWindow::openBlockEditor(const QString& preset, const Shape& shape)
{
    if (auto* open = findChild<BlockEditor*>()) {
        open->raise();
        return open;
    }
    auto* editor = new BlockEditor(*m_theme, this);
    editor->setAttribute(Qt::WA_DeleteOnClose);
    if (!preset.isEmpty()) editor->choose(preset, shape.ranks, shape.microbatches);
    connect(editor, &BlockEditor::createAsked, this, [this](const std::shared_ptr<const Schedule>& schedule) {
        auto run = simulatedRun(*schedule, CostModel::uniform(*schedule));
        if (!run) {
            m_banner->showError(QString(), run.error());
            return;
        }
        run->info.name = tr("block %1, %2 × %3").arg(QString::fromStdString(schedule->name)).arg(schedule->ranks).arg(schedule->microbatches).toStdString();
        showRun(m_library->addSimulated(std::move(*run)));
    });
    editor->open();
    return editor;
}

} // namespace stagewright
