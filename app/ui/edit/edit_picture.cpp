#include "app/ui/edit/edit_picture.h"

#include <algorithm>

#include "app/ui/workspace/workspace.h"
#include "schedules/timeline/timeline_of.h"
#include "widgets/memory/memory_view.h"
#include "widgets/timeline/legend.h"
#include "widgets/timeline/timeline_view.h"

namespace stagewright {

EditPicture::EditPicture(Workspace& workspace, ScheduleEditor* editor, EditSelection* selection, EditOverlay* overlay,
                         const EditDrag& drag)
    : QObject(overlay), m_workspace(workspace), m_view(workspace.views().timeline), m_editor(editor),
      m_selection(selection), m_overlay(overlay), m_drag(drag), m_detailing(workspace.jobs())
{
}

void EditPicture::clear()
{
    m_detailing.drop();
    for (auto* picture : {&m_panel, &m_waiting, &m_original}) picture->reset();
}

// The committed order on screen. Large orders are drawn at once from their spans; the rest is computed in the
// background.
void EditPicture::draw()
{
    const bool detailed = m_editor->schedule().opCount() <= ScheduleEditor::detailLimit;
    PanelOptions options;
    options.step = 0;
    options.name = QString::fromStdString(m_editor->schedule().name);
    options.memoryCap = m_workspace.shown().budget();
    options.causes = detailed;
    const auto& faults = m_editor->validation().faults;
    options.hangs =
        std::any_of(faults.begin(), faults.end(), [](const Fault& fault) { return fault.kind == FaultKind::Deadlock; });
    options.pyramids = detailed || m_editor->schedule().opCount() > 200000;
    if (m_editor->timeline() == nullptr) return;
    const bool keep = !m_view->panels().empty() && m_workspace.viewState()->extent().duration() > 0 &&
                      !m_workspace.viewState()->isFitted();
    m_panel = makePanel(m_editor->timeline(), options);
    m_selection->hold(true);
    m_view->setPanels({m_panel});
    if (detailed) m_workspace.views().memory->setPanels({m_panel});
    m_workspace.views().legend->setPanels({m_panel});
    m_selection->hold(false);
    if (!keep) m_workspace.viewState()->fitAll();
    m_overlay->setFaults(m_editor->faultSpans());
    emit drawn();
    m_detailing.drop();
    if (detailed) return;
    options.causes = options.pyramids = true;
    m_detailing.start(
        [order = std::make_shared<const Schedule>(m_editor->schedule()),
         times = std::make_shared<const SimResult>(m_editor->times()),
         costs = std::make_shared<const CostModel>(m_editor->costs()),
         options]() -> std::shared_ptr<const TimelinePanel> {
            auto timeline = timelineOf(*order, *times, *costs);
            return timeline ? makePanel(*timeline, options) : nullptr;
        },
        [this](const std::shared_ptr<const TimelinePanel>& panel) {
            if (!panel) return;
            m_waiting = panel;
            showWaiting();
        });
}

// Replaces the drawn spans with the detailed picture of the same order; its span ids differ.
void EditPicture::showWaiting()
{
    if (!m_waiting || m_drag.dragging()) return;
    m_panel = std::exchange(m_waiting, nullptr);
    m_editor->setDetailed(m_panel->timeline);
    m_selection->hold(true);
    m_view->setPanels({m_panel});
    m_workspace.views().memory->setPanels({m_panel});
    m_selection->hold(false);
    m_overlay->setFaults(m_editor->faultSpans());
    m_selection->show();
    if (!m_original || !m_editor->changed()) m_original = m_panel;
    emit drawn();
    emit detailed();
}

} // namespace stagewright
