#include "widgets/timeline/timeline_accessible.h"

#include <algorithm>
#include <map>
#include <tuple>
#include <utility>

#include <QAccessible>
#include <QAccessibleWidget>
#include <QCoreApplication>
#include <QPointer>

#include "schedules/model/kinds.h"
#include "widgets/literals.h"
#include "widgets/sentence.h"
#include "widgets/timeline/geometry.h"
#include "widgets/timeline/timeline_view.h"

namespace stagewright {
namespace {

class SliceAccessible : public QAccessibleInterface, public QAccessibleActionInterface {
public:
    SliceAccessible(TimelineView* view, ViewState* state, SpanRef ref) : m_view(view), m_state(state), m_ref(ref) {}

    bool isValid() const override
    {
        return m_view && m_ref.panel < static_cast<int>(m_view->panels().size()) &&
               m_ref.span < m_view->panels()[static_cast<std::size_t>(m_ref.panel)]->timeline->spans().size();
    }
    QObject* object() const override { return nullptr; }
    QAccessibleInterface* parent() const override { return QAccessible::queryAccessibleInterface(m_view); }
    QAccessibleInterface* child(int) const override { return nullptr; }
    QAccessibleInterface* childAt(int, int) const override { return nullptr; }
    int childCount() const override { return 0; }
    int indexOfChild(const QAccessibleInterface*) const override { return -1; }
    QAccessible::Role role() const override { return QAccessible::ListItem; }
    QString text(QAccessible::Text which) const override
    {
        if (!isValid()) return {};
        const TimelinePanel& panel = *m_view->panels()[static_cast<std::size_t>(m_ref.panel)];
        if (which == QAccessible::Name) return accessibleSliceName(panel, m_ref.span);
        if (which == QAccessible::Description) return m_view->cardOf(m_ref).plain();
        return {};
    }
    void setText(QAccessible::Text, const QString&) override {}
    QRect rect() const override
    {
        const auto rect = isValid() ? m_view->rectOf(m_ref) : std::nullopt;
        if (!rect) return {};
        const QRect inside = rect->toAlignedRect().intersected(m_view->rect());
        return {m_view->mapToGlobal(inside.topLeft()), inside.size()};
    }
    QAccessible::State state() const override
    {
        QAccessible::State state;
        state.selectable = state.focusable = true;
        state.selected = state.focused = m_state && m_state->selected() == m_ref;
        state.invalid = !isValid();
        return state;
    }
    void* interface_cast(QAccessible::InterfaceType type) override
    {
        return type == QAccessible::ActionInterface ? static_cast<QAccessibleActionInterface*>(this) : nullptr;
    }
    QStringList actionNames() const override { return {pressAction()}; }
    void doAction(const QString& name) override
    {
        if (name == pressAction() && isValid() && m_state) m_state->select(m_ref);
    }
    QStringList keyBindingsForAction(const QString&) const override { return {}; }
    SpanRef ref() const { return m_ref; }

private:
    QPointer<TimelineView> m_view;
    QPointer<ViewState> m_state;
    SpanRef m_ref;
};

class TimelineAccessible : public QAccessibleWidget {
public:
    explicit TimelineAccessible(TimelineView* view) : QAccessibleWidget(view, QAccessible::Chart) {}
    ~TimelineAccessible() override
    {
        for (const auto& [key, id] : m_ids) QAccessible::deleteAccessibleInterface(id);
    }

    int childCount() const override { return static_cast<int>(inView().size()); }
    QAccessibleInterface* child(int index) const override
    {
        const auto& slices = inView();
        return index >= 0 && index < static_cast<int>(slices.size()) ? sliceOf(slices[static_cast<std::size_t>(index)])
                                                                     : nullptr;
    }
    int indexOfChild(const QAccessibleInterface* child) const override
    {
        const auto* slice = dynamic_cast<const SliceAccessible*>(child);
        if (slice == nullptr) return -1;
        const auto& slices = inView();
        const auto found = std::find(slices.begin(), slices.end(), slice->ref());
        return found == slices.end() ? -1 : static_cast<int>(found - slices.begin());
    }
    QAccessibleInterface* childAt(int x, int y) const override
    {
        const SpanRef ref = view()->scene().spanAt(view()->mapFromGlobal(QPoint(x, y)));
        return ref.valid() ? sliceOf(ref) : nullptr;
    }
    QAccessibleInterface* focusChild() const override
    {
        const SpanRef selected = view()->viewState()->selected();
        return selected.valid() ? sliceOf(selected) : nullptr;
    }
    QString text(QAccessible::Text which) const override
    {
        if (which == QAccessible::Value) return view()->statusText();
        return QAccessibleWidget::text(which);
    }

private:
    TimelineView* view() const { return static_cast<TimelineView*>(widget()); }
    // A screen reader requests every child in turn: the slices in view are found once per view state.
    const std::vector<SpanRef>& inView() const
    {
        const auto key = std::make_tuple(
            view()->scene().axis.range.begin, view()->scene().axis.range.end, view()->scene().scroll,
            view()->size().width(), view()->size().height(),
            static_cast<const void*>(view()->panels().empty() ? nullptr : view()->panels().front().get()));
        if (key != m_key) {
            m_key = key;
            m_slices = slicesInView(*view());
        }
        return m_slices;
    }
    QAccessibleInterface* sliceOf(SpanRef ref) const
    {
        const auto key = std::make_pair(ref.panel, ref.span);
        const auto known = m_ids.find(key);
        if (known != m_ids.end()) {
            QAccessibleInterface* found = QAccessible::accessibleInterface(known->second);
            if (found != nullptr) return found;
        }
        if (m_ids.size() > 4 * mostAccessibleSlices) { // limits what long walks keep
            for (const auto& [old, id] : m_ids) QAccessible::deleteAccessibleInterface(id);
            m_ids.clear();
        }
        auto* made = new SliceAccessible(view(), view()->viewState(), ref);
        m_ids[key] = QAccessible::registerAccessibleInterface(made);
        return made;
    }
    mutable std::map<std::pair<int, SpanId>, QAccessible::Id> m_ids;
    mutable std::tuple<Nanos, Nanos, double, int, int, const void*> m_key{-1, -1, -1, -1, -1, nullptr};
    mutable std::vector<SpanRef> m_slices;
};

QAccessibleInterface* make(const QString& name, QObject* object)
{
    if (name != QLatin1String(TimelineView::staticMetaObject.className())) return nullptr;
    auto* view = qobject_cast<TimelineView*>(object);
    return view != nullptr ? new TimelineAccessible(view) : nullptr;
}

} // namespace

QString accessibleSliceName(const TimelinePanel& panel, SpanId id)
{
    const Timeline& timeline = *panel.timeline;
    const Span& span = timeline.spans()[id];
    QStringList parts;
    if (span.label != 0) {
        parts << QString::fromStdString(timeline.nameOf(span));
    } else {
        parts << sentence(ruleOf(span.op.kind).title);
        if (span.op.microbatch >= 0)
            parts
                << (span.op.count > 1
                        ? u"microbatches %1 to %2"_s.arg(span.op.microbatch).arg(span.op.microbatch + span.op.count - 1)
                        : u"microbatch %1"_s.arg(span.op.microbatch));
        if (timeline.schedule() && timeline.schedule()->stages > timeline.ranks())
            parts << u"stage %1"_s.arg(span.op.stage);
    }
    parts << u"rank %1"_s.arg(timeline.trackOf(id).rank);
    parts << u"%1 at %2"_s.arg(durationText(span.duration(), panel.units),
                               durationText(panel.toAxis(span.start), panel.units));
    return parts.join(u", "_s);
}

std::vector<SpanRef> slicesInView(const TimelineView& view, std::size_t most)
{
    std::vector<SpanRef> found;
    const TimeRange range = view.scene().axis.range;
    for (int p = 0; p < static_cast<int>(view.panels().size()); ++p) {
        for (const PanelRank& rank : view.panels()[static_cast<std::size_t>(p)]->ranks) {
            const auto add = [&](const LaneData& lane) {
                const std::size_t from = lane.firstEndingAfter(range.begin), to = lane.firstBeginningAt(range.end);
                for (std::size_t i = from; i < to && found.size() < most; ++i) {
                    const SpanRef ref{p, lane.spanOf(i)};
                    const auto rect = view.rectOf(ref);
                    // the whole row is out of view
                    if (!rect || rect->bottom() <= rulerHeight || rect->top() >= view.height()) return;
                    found.push_back(ref);
                }
            };
            add(rank.compute);
            for (const LaneData& lane : rank.communication) add(lane);
            if (view.panels()[static_cast<std::size_t>(p)]->noOps) // its kernels and ranges are all that there is
                for (const PanelLane& lane : rank.lanes) add(lane.data);
        }
    }
    return found;
}

void installTimelineAccessibility()
{
    static const bool once = [] {
        QAccessible::installFactory(&make);
        return true;
    }();
    (void)once;
}

} // namespace stagewright
