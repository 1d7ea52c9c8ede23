#include "app/ui/edit/edit_drag.h"

#include <algorithm>
#include <utility>

#include <QGuiApplication>
#include <QLabel>

#include "app/ui/workspace/workspace.h"
#include "schedules/edit/missing_collectives.h"
#include "widgets/edit/move_hint.h"
#include "widgets/literals.h"
#include "widgets/numbers.h"
#include "widgets/sentence.h"
#include "widgets/timeline/timeline_view.h"

namespace stagewright {
namespace {

constexpr std::size_t explainLimit = 4000; // up to this many ops, a refused place is explained at once

// The result of the drag, over the ghosts.
void showLabel(TimelineView* view, const Theme& theme, const QString& text, const QColor& fill, const QRectF& at)
{
    auto* label = view->findChild<QLabel*>(u"dragLabel"_s);
    if (label == nullptr) {
        label = new QLabel(view);
        label->setObjectName(u"dragLabel"_s);
        label->setTextFormat(Qt::PlainText);
        label->setAttribute(Qt::WA_TransparentForMouseEvents);
    }
    label->setStyleSheet(
        u"QLabel { background: %1; color: %2; border-radius: 4px; padding: 3px 9px; font-weight: 600; }"_s.arg(
            fill.name(), (theme.dark ? theme.canvas : theme.onAccent).name()));
    label->setText(text);
    label->adjustSize();
    const int x = std::clamp(static_cast<int>(at.left()), static_cast<int>(gutterFor(view->width())),
                             std::max(static_cast<int>(gutterFor(view->width())), view->width() - label->width() - 4));
    int y = static_cast<int>(at.bottom()) + 5;
    if (y + label->height() > view->height()) y = static_cast<int>(at.top()) - label->height() - 5;
    label->move(x, y);
    label->show();
    label->raise();
}

void hideLabel(TimelineView* view)
{
    if (auto* label = view->findChild<QLabel*>(u"dragLabel"_s)) label->hide();
}

QString onTwoLines(const MoveRefusal& why, const Op& op)
{
    QString text = QString::fromStdString(why.sentence(op));
    const auto at = text.lastIndexOf(u". "_s);
    if (at > 0) text.replace(at, 2, u".\n"_s);
    return text;
}

} // namespace

EditDrag::EditDrag(Workspace& workspace, ScheduleEditor* editor, EditSelection* selection, EditOverlay* overlay)
    : QObject(overlay), m_workspace(workspace), m_view(workspace.views().timeline), m_editor(editor),
      m_selection(selection), m_overlay(overlay), m_hint(new MoveHint(m_view)), m_explaining(workspace.jobs())
{
    connect(overlay, &EditOverlay::opDragged, this,
            [this](SpanRef, int rank, int from, int toRank, int to) { dragged(rank, from, toRank, to); });
    connect(overlay, &EditOverlay::opDropped, this,
            [this](SpanRef, int rank, int from, int toRank, int to) { dropped(rank, from, toRank, to); });
    connect(overlay, &EditOverlay::opNudged, this,
            [this](SpanRef, int rank, int position, int by) { nudged(rank, position, by); });
    connect(overlay, &EditOverlay::opDragCancelled, this, [this] {
        const bool wasDrag = m_dragging;
        end();
        // A click on one of several without a drag selects only it.
        if (!wasDrag && m_editor->active() && m_selection->ops().size() > 1 && m_workspace.viewState()->areas().empty())
            m_selection->choose({m_selection->ops().front()});
    });
    Actions& actions = workspace.actions();
    connect(m_hint, &MoveHint::goAsked, this, &EditDrag::goThere);
    connect(m_hint, &MoveHint::carryAsked, this, &EditDrag::carryAlong);
    connect(m_hint, &MoveHint::undoAsked, m_editor->undoStack(), &QUndoStack::undo);
    connect(actions["goThere"], &QAction::triggered, this, &EditDrag::goThere);
    connect(actions["carryThere"], &QAction::triggered, this, &EditDrag::carryAlong);
    const auto key = [&](ActionId id) { return actions[id]->shortcut().toString(QKeySequence::NativeText); };
    m_hint->setKeys(key("goThere"), key("carryThere"), key("undo"));
}

bool EditDrag::isOn(ActionId id) const { return m_workspace.actions()[id]->isChecked(); }

bool EditDrag::canGo() const { return canCarry() && m_goThere >= 0; }

bool EditDrag::canCarry() const { return m_editor->active() && !m_hint->isHidden(); }

void EditDrag::stop()
{
    m_dragging = false;
    m_explaining.drop();
    m_hint->hide();
    m_view->setPreview(nullptr);
}

void EditDrag::showPreview()
{
    PanelOptions options;
    options.step = 0;
    options.causes = options.pyramids = false;
    if (m_editor->timeline()) m_view->setPreview(makePanel(m_editor->timeline(), options));
}

void EditDrag::nudged(int rank, int position, int by)
{
    if (!m_editor->active()) return;
    const OpPosition from{rank, position};
    const Op* op = opAt(m_editor->schedule(), from);
    if (op == nullptr) return;
    const Op moving = *op;
    if (m_selection->ops().size() > 1) {
        m_editor->apply(u"Nudge %1"_s.arg(m_selection->names()), moveOps(m_editor->schedule(), m_selection->ops(), by),
                        static_cast<int>(m_selection->ops().size()));
        return;
    }
    if (isOn("carryAlong")) {
        if (position + by < 0 ||
            position + by >= static_cast<int>(m_editor->schedule().order[static_cast<std::size_t>(rank)].size()))
            return;
        m_editor->apply(u"Nudge %1 on rank %2"_s.arg(QString::fromStdString(toText(moving))).arg(rank),
                        moveCarrying(m_editor->schedule(), from, position + by));
        return;
    }
    const bool before = m_editor->valid();
    if (isOn("strictMoves") && before) {
        auto trial = moveOps(m_editor->schedule(), {from}, by);
        if (trial && !validate(trial->schedule).valid()) {
            explain(from, position + by, false);
            return;
        }
    }
    if (m_editor->nudge(from, by) && before && !m_editor->valid()) {
        m_refused = {from, moving, position + by};
        explain(from, position + by, true);
    }
}

Result<Edited> EditDrag::moved(int rank, int from, int toRank, int to, bool carry) const
{
    const Schedule& order = m_editor->schedule();
    if (toRank != rank) return moveToRank(order, {rank, from}, toRank, to);
    if (m_selection->ops().size() > 1) return moveOps(order, m_selection->ops(), to - from);
    return carry ? moveCarrying(order, {rank, from}, to) : moveOps(order, {{rank, from}}, to - from);
}

void EditDrag::dragged(int rank, int from, int toRank, int to)
{
    const Op* op = opAt(m_editor->schedule(), {rank, from});
    if (!m_editor->active() || op == nullptr) return;
    const Op moving = *op;
    if (!m_dragging) {
        m_dragging = true;
        m_hint->hide();
        m_overlay->setGhost(m_view->panels().front());
    }
    m_explaining.drop();
    const bool carry = isOn("carryAlong") || (QGuiApplication::keyboardModifiers() & Qt::ShiftModifier) != 0;
    auto change = moved(rank, from, toRank, to, carry);
    if (!change) {
        m_editor->cancelPreview();
        m_view->setPreview(nullptr);
        QString message = QString::fromStdString(change.error().message);
        if (!change.error().remedy.empty()) message += u'\n' + QString::fromStdString(change.error().remedy);
        tell(message, false, rank, toRank, to, {rank, from});
        return;
    }
    const OpPosition there = change->positions.empty() ? OpPosition{rank, from} : change->positions.front();
    const bool unmoved = change->schedule == m_editor->schedule();
    const EditFigures before = m_editor->committedFigures();
    const Units units{m_editor->costs().timeUnit, m_editor->costs().memoryUnit};
    m_editor->preview(std::move(change->schedule), std::move(change->positions));
    showPreview();
    if (m_editor->valid() || !m_editor->committedValid()) {
        const EditFigures& now = m_editor->figures();
        QString message = unmoved                           ? u"no change"_s
                          : now.makespan == before.makespan ? u"same time"_s
                                                            : signedDurationText(now.makespan - before.makespan, units);
        Bytes change2 = 0; // the rank whose peak changes most
        std::size_t changed = 0;
        for (std::size_t r = 0; r < now.peaks.size() && r < before.peaks.size(); ++r)
            if (std::abs(now.peaks[r] - before.peaks[r]) > std::abs(change2)) {
                change2 = now.peaks[r] - before.peaks[r];
                changed = r;
            }
        if (change2 != 0)
            message += u" · peak of rank %1 %2%3"_s.arg(changed).arg(change2 < 0 ? QString(QChar(0x2212)) : u"+"_s,
                                                                     bytesText(std::abs(change2), units));
        if (!m_editor->valid())
            message += u'\n' + QString::fromStdString(m_editor->validation().faults.front().message);
        tell(message, m_editor->valid(), rank, toRank, to, there);
        return;
    }
    const QString fault = QString::fromStdString(m_editor->validation().faults.front().message);
    if (toRank != rank || m_selection->ops().size() > 1) {
        tell(fault, false, rank, toRank, to, there);
    } else if (m_editor->schedule().opCount() <= explainLimit) {
        tell(onTwoLines(explainMove(m_editor->schedule(), {rank, from}, to), moving), false, rank, toRank, to, there);
    } else { // computed in the background
        tell(fault, false, rank, toRank, to, there);
        m_explaining.start(
            [order = std::make_shared<const Schedule>(m_editor->schedule()), rank, from, to] {
                return explainMove(*order, {rank, from}, to);
            },
            [this, moving, rank, toRank, to, there](const MoveRefusal& why) {
                if (m_dragging) tell(onTwoLines(why, moving), false, rank, toRank, to, there);
            });
    }
}

// The label under the op and the bar at its new place.
void EditDrag::tell(const QString& message, bool valid, int rank, int toRank, int to, OpPosition there)
{
    const auto& panels = m_view->panels();
    if (panels.empty()) return;
    DragFeedback feedback;
    feedback.toRank = toRank;
    feedback.valid = valid;
    const auto& preview = m_view->scene().preview;
    const TimelinePanel& drawn = preview ? *preview : *panels.front();
    const SpanId span = m_editor->spanAt(there);
    if (span == noSpan || span >= drawn.timeline->spans().size()) return;
    feedback.span = {0, span};
    const Span& placed = drawn.timeline->spans()[span];
    feedback.begin = drawn.toAxis(placed.start);
    feedback.end = drawn.toAxis(placed.end);
    const auto& lane = panels.front()->ranks[static_cast<std::size_t>(toRank)].compute;
    const int from = there.position;
    const auto follows = static_cast<std::size_t>(std::max(0, rank == toRank && to >= from && !preview ? to + 1 : to));
    if (!preview && !lane.slices().empty())
        feedback.insertAt = follows < lane.size() ? lane.slices()[follows].begin() : lane.end();
    m_overlay->setDrag(feedback);
    const auto row = m_view->scene().rowRect(0, toRank);
    if (row)
        showLabel(m_view, m_workspace.theme(), message,
                  !valid ? m_workspace.theme().critical
                  : m_editor->figures().makespan < m_editor->committedFigures().makespan
                      ? m_workspace.theme().better
                      : m_workspace.theme().secondary,
                  QRectF(m_view->scene().axis.toX(feedback.begin), row->top(), 10, row->height()));
}

void EditDrag::end()
{
    m_dragging = false;
    m_explaining.drop();
    m_view->setPreview(nullptr);
    m_overlay->setDrag(std::nullopt);
    hideLabel(m_view);
    m_editor->cancelPreview();
    emit ended();
}

QString EditDrag::nameOf(int rank, int from, int toRank) const
{
    const Op* op = opAt(m_editor->schedule(), {rank, from});
    const QString name = m_selection->ops().size() > 1 && toRank == rank ? m_selection->names()
                         : op != nullptr                                 ? QString::fromStdString(toText(*op))
                                                                         : QString();
    return toRank == rank ? u"Move %1 on rank %2"_s.arg(name).arg(rank) : u"Move %1 to rank %2"_s.arg(name).arg(toRank);
}

void EditDrag::dropped(int rank, int from, int toRank, int to)
{
    if (!m_editor->active()) return;
    const bool carry = isOn("carryAlong") || (QGuiApplication::keyboardModifiers() & Qt::ShiftModifier) != 0;
    const Op* op = opAt(m_editor->schedule(), {rank, from});
    if (op == nullptr) return end();
    const Op moving = *op;
    const QString text = nameOf(rank, from, toRank);
    const bool wasValid = m_editor->committedValid();
    const bool alone = toRank == rank && m_selection->ops().size() <= 1;
    const bool nowValid = m_editor->valid();
    auto change = moved(rank, from, toRank, to, carry);
    m_dragging = false;
    m_view->setPreview(nullptr);
    m_overlay->setDrag(std::nullopt);
    hideLabel(m_view);
    if (change && isOn("strictMoves") && wasValid && !nowValid) { // moves back, with the reason
        end();
        if (alone)
            explain({rank, from}, to, false);
        else
            m_workspace.room().tell(u"%1 would break the order, so nothing moved"_s.arg(text), 6000);
        return;
    }
    m_refused = {};
    if (!m_editor->apply(text, std::move(change))) {
        end();
        return;
    }
    end();
    if (alone && wasValid && !m_editor->valid()) {
        m_refused = {{rank, from}, moving, to};
        explain({rank, from}, to, true);
    }
}

void EditDrag::trayDragged(const Op& op, const QPoint& at)
{
    if (!m_editor->active() || m_view->panels().empty()) return;
    if (!m_dragging) {
        m_dragging = true;
        m_hint->hide();
    }
    m_editor->cancelPreview();
    m_view->setPreview(nullptr);
    m_overlay->setDrag(std::nullopt);
    hideLabel(m_view);
    const QPointF pointer = m_view->mapFromGlobal(QPointF(at));
    const auto place = m_overlay->dropPlace(pointer);
    if (!place) return;
    const OpPosition missing = placeOfMissing(m_editor->schedule(), op);
    const int own = missing.valid() ? missing.rank : m_editor->schedule().placement.rankOf(op.stage, op.microbatch);
    const QString name = QString::fromStdString(toText(op));
    if (place->rank != own) {
        const auto row = m_view->scene().rowRect(place->panel, place->rank);
        if (row)
            showLabel(m_view, m_workspace.theme(),
                      u"%1 belongs to stage %2, which is on rank %3"_s.arg(name).arg(op.stage).arg(own), false,
                      QRectF(pointer.x(), row->top(), 10, row->height()));
        return;
    }
    auto change = insertOps(m_editor->schedule(), own, place->position, {op});
    if (!change) return;
    const OpPosition there = change->positions.empty() ? OpPosition{own, place->position} : change->positions.front();
    m_editor->preview(std::move(change->schedule), std::move(change->positions));
    showPreview();
    // An order that is not complete has faults for what is missing; only one of this op's place speaks against it.
    const auto& faults = m_editor->validation().faults;
    const auto wrong = std::find_if(faults.begin(), faults.end(), [](const Fault& fault) {
        return fault.kind != FaultKind::Count && fault.kind != FaultKind::Deadlock;
    });
    tell(wrong == faults.end() ? u"Place %1 here"_s.arg(name) : QString::fromStdString(wrong->message),
         wrong == faults.end(), own, own, place->position, there);
}

void EditDrag::trayDropped(const Op& op, const QPoint& at)
{
    if (!m_editor->active()) return;
    const auto place = m_overlay->dropPlace(m_view->mapFromGlobal(QPointF(at)));
    end();
    const OpPosition missing = placeOfMissing(m_editor->schedule(), op);
    const int own = missing.valid() ? missing.rank : m_editor->schedule().placement.rankOf(op.stage, op.microbatch);
    const QString name = QString::fromStdString(toText(op));
    if (!place) return;
    if (place->rank != own) {
        const auto row = m_view->scene().rowRect(place->panel, place->rank);
        const QPointF at2 = m_view->mapFromGlobal(QPointF(at));
        refuse(Error{ErrorCode::Invalid,
                     name.toStdString() + " belongs to stage " + std::to_string(op.stage) + ", which is on rank " +
                         std::to_string(own),
                     "drop it there"},
               QRectF(at2.x(), row ? row->top() : at2.y(), 10, row ? row->height() : 10));
        return;
    }
    m_selection->apply(u"Place %1"_s.arg(name), insertOps(m_editor->schedule(), own, place->position, {op}));
}

// The card at the op. `made`: the move was made and can be undone; otherwise it was refused.
void EditDrag::explain(OpPosition from, int to, bool made)
{
    auto before = std::make_shared<Schedule>(m_editor->schedule());
    Op op = made ? m_refused.op : (opAt(*before, from) != nullptr ? *opAt(*before, from) : Op());
    if (made) {
        if (auto back = moveOps(*before, {{from.rank, to}}, from.position - to)) *before = std::move(back->schedule);
    } else {
        m_refused = {from, op, to};
    }
    m_explaining.drop();
    auto show = [this, op, from, to, made](const MoveRefusal& why) {
        if (!m_editor->active() || !why.refused) return;
        m_goThere = why.goThere;
        const SpanId span = m_editor->spanAt({from.rank, made ? to : from.position});
        const auto rect = span == noSpan ? std::nullopt : m_view->rectOf({0, span});
        const QString place = sentence(why.where);
        const QString reason =
            u"%1 can't go there: %2"_s.arg(QString::fromStdString(toText(op)), QString::fromStdString(why.reason));
        m_hint->showAt(rect.value_or(QRectF(gutterWidth + 20, rulerHeight + 20, 10, 10)), reason, place,
                       why.goThere >= 0 && why.goThere != from.position, true, made);
        m_workspace.room().tell(m_hint->text(), 10000);
        emit explained();
    };
    if (before->opCount() <= explainLimit)
        show(explainMove(*before, from, to));
    else
        m_explaining.start([before, from, to] { return explainMove(*before, from, to); }, show);
}

void EditDrag::goThere()
{
    if (m_hint->isHidden() || m_goThere < 0 || !m_refused.from.valid()) return;
    const OpPosition now = positionOf(m_editor->schedule(), m_refused.op, m_refused.from.rank);
    m_hint->hide();
    if (now.valid() && now.position != m_goThere)
        m_editor->apply(u"Move %1 to the nearest place"_s.arg(QString::fromStdString(toText(m_refused.op))),
                        moveOps(m_editor->schedule(), {now}, m_goThere - now.position));
}

void EditDrag::carryAlong()
{
    if (m_hint->isHidden() || !m_refused.from.valid() || m_refused.to < 0) return;
    const OpPosition now = positionOf(m_editor->schedule(), m_refused.op, m_refused.from.rank);
    m_hint->hide();
    if (!now.valid()) return;
    auto before = now == m_refused.from ? Result<Edited>(Edited{m_editor->schedule(), {}})
                                        : moveOps(m_editor->schedule(), {now}, m_refused.from.position - now.position);
    if (before)
        m_editor->apply(u"Move %1 with its dependants"_s.arg(QString::fromStdString(toText(m_refused.op))),
                        moveCarrying(before->schedule, m_refused.from, m_refused.to));
}

void EditDrag::refuse(const Error& error, const std::optional<QRectF>& at)
{
    if (error.message.empty()) return m_hint->hide();
    QString text = sentence(error.message);
    if (!error.remedy.empty()) text += u"; "_s + QString::fromStdString(error.remedy);
    m_workspace.room().tell(text, 10000);
    m_goThere = -1;
    m_refused = {};
    m_hint->showAt(at.value_or(m_selection->place()), sentence(error.message), sentence(error.remedy), false, false,
                   false);
}

} // namespace stagewright
