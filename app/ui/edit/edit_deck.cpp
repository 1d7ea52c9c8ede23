#include "app/ui/edit/edit_deck.h"

#include <algorithm>
#include <unordered_set>

#include <QListView>
#include <QSplitter>

#include "app/ui/workspace/workspace.h"
#include "schedules/edit/missing_collectives.h"
#include "widgets/edit/op_tray.h"
#include "widgets/edit/schedule_editor.h"
#include "widgets/edit/schedule_text.h"
#include "widgets/literals.h"
#include "widgets/memory/memory_view.h"
#include "widgets/timeline/timeline_view.h"

namespace stagewright {

EditDeck::EditDeck(Workspace& workspace, ScheduleEditor* editor)
    : QObject(editor), m_workspace(workspace), m_view(workspace.views().timeline), m_editor(editor)
{
    auto* rows = qobject_cast<QSplitter*>(m_view->parentWidget());
    m_deck = new QSplitter(Qt::Vertical);
    m_deck->setObjectName(u"editDeck"_s);
    m_deck->setHandleWidth(1);
    m_deck->setChildrenCollapsible(false);
    m_tray = new OpTray(m_deck);
    m_text = new ScheduleText(m_deck);
    m_deck->addWidget(m_tray);
    m_deck->addWidget(m_text);
    m_deck->setMinimumHeight(90);
    if (rows != nullptr) rows->addWidget(m_deck);
    m_deck->hide();
    connect(workspace.actions()["scheduleText"], &QAction::toggled, this, &EditDeck::showText);
    connect(m_text, &ScheduleText::typed, this, [this](const Schedule& schedule, int session) {
        if (m_editor->active()) m_editor->replace(u"Type in the text"_s, schedule, session);
    });
    connect(m_text, &ScheduleText::undoAsked, editor->undoStack(), &QUndoStack::undo);
    connect(m_text, &ScheduleText::redoAsked, editor->undoStack(), &QUndoStack::redo);
    connect(m_text, &ScheduleText::leaveAsked, this, [this] { m_view->setFocus(); });
    const auto theme = [this] {
        m_text->setTheme(m_workspace.theme());
        m_tray->setTheme(m_workspace.theme());
    };
    connect(&workspace, &Workspace::themeChanged, this, theme);
    theme();
}

bool EditDeck::showsText() const { return m_workspace.actions()["scheduleText"]->isChecked(); }

bool EditDeck::showsTray() const { return m_trayShown && m_tray->count() > 0; }

int EditDeck::chips() const { return showsTray() ? m_tray->heightFor(m_deck->width()) : 0; }

void EditDeck::showText(bool wanted)
{
    m_text->setVisible(wanted);
    m_deck->setVisible(m_editor->active() && (wanted || showsTray()));
    if (!wanted || !m_editor->active()) return;
    m_text->setSchedule(std::make_shared<const Schedule>(m_editor->schedule()), m_editor->validation());
    m_text->field()->setFocus();
}

void EditDeck::begin()
{
    m_text->clear();
    m_text->setVisible(showsText());
}

void EditDeck::end()
{
    m_deck->hide();
    m_text->clear();
}

void EditDeck::setTray(bool shown, bool placesAll)
{
    m_tray->setPlacesAll(placesAll);
    if (std::exchange(m_trayShown, shown) == shown) return;
    showTray();
    fit(false);
}

void EditDeck::showTray()
{
    if (m_tray->list()->hasFocus() && !showsTray()) m_view->setFocus(Qt::OtherFocusReason);
    m_tray->setVisible(showsTray());
    m_deck->setVisible(m_editor->active() && (showsText() || showsTray()));
    if (m_editor->schedule().opCount() == 0 && m_view->hasFocus()) takeKeys(); // it can do nothing else
}

void EditDeck::takeKeys()
{
    if (m_tray->isVisible()) m_tray->list()->setFocus(Qt::OtherFocusReason);
}

// The tray has the height of its chips, up to four rows, taken from the views above, never from the text.
void EditDeck::fit(bool fresh)
{
    auto* rows = qobject_cast<QSplitter*>(m_view->parentWidget());
    if (rows == nullptr || !m_deck->isVisible()) return;
    const int height = rows->height();
    const bool text = showsText(), tray = showsTray();
    const int lines = text ? 75 + 16 * std::min(m_editor->schedule().ranks, 12) : 0;
    const int chips = this->chips();
    const int wanted = fresh || !text ? lines : std::max(m_text->height(), m_text->minimumSizeHint().height());
    const int deck = std::clamp(std::min(wanted, height / 3) + chips, 110, std::max(110, height * 3 / 5));
    QList<int> sizes = rows->sizes();
    const int timeline = rows->indexOf(m_view), memory = rows->indexOf(m_workspace.views().memory);
    sizes[rows->indexOf(m_deck)] = deck;
    const bool charts = m_workspace.views().memory->isVisible();
    sizes[timeline] = charts ? std::min(m_view->sizeHint().height(), (height - deck) * 62 / 100) : height - deck;
    if (memory >= 0) sizes[memory] = std::max(60, height - deck - sizes[timeline]);
    rows->setSizes(sizes);
    if (text && tray) m_deck->setSizes({chips, std::max(m_text->minimumSizeHint().height(), deck - chips)});
}

void EditDeck::showOrder()
{
    if (m_text->isVisibleTo(m_deck))
        m_text->setSchedule(std::make_shared<const Schedule>(m_editor->schedule()), m_editor->validation());
    std::vector<TrayOp> tray;
    if (!m_editor->complete()) {
        const Schedule& order = m_editor->schedule();
        const auto& unplaced = m_editor->unplaced();
        const std::unordered_set<Op> missing(unplaced.begin(), unplaced.end());
        for (const Op& op : unplaced) {
            bool ready = true;
            order.graph.eachNeed(op, order.stages, [&](const Need& need, int stage) {
                Op input = asKind(op, need.kind);
                input.stage = static_cast<std::uint16_t>(stage);
                ready = ready && !missing.contains(input) && !missing.contains(asKind(input, need.orKind));
            });
            tray.push_back({op, order.placement.rankOf(op.stage, op.microbatch), ready});
        }
    }
    for (const MissingCollective& missing : missingCollectives(m_editor->schedule()))
        tray.push_back({missing.op, missing.at.rank, true});
    const int before = chips();
    m_tray->setOps(std::move(tray));
    showTray();
    if (before != chips()) fit(false);
}

} // namespace stagewright
