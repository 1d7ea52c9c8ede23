#include "widgets/timeline/legend.h"

#include <algorithm>

#include <QFontMetricsF>
#include <QPainter>

#include "schedules/model/kinds.h"
#include "widgets/literals.h"
#include "widgets/sentence.h"
#include "widgets/timeline/geometry.h"
#include "widgets/timeline/slice_shapes.h"

namespace stagewright {

Legend::Legend(QWidget* parent) : ThemedWidget(parent)
{
    loadFonts();
    setObjectName(u"legend"_s);
    setAccessibleName(u"Legend"_s);
    setPanels({});
}

void Legend::setPanels(const std::vector<std::shared_ptr<const TimelinePanel>>& panels)
{
    std::array<bool, opKindRoom> occurs{};
    bool critical = false, transfers = false, collectives = false, chunks = false, copies = false, pairs = false;
    for (const auto& panel : panels) {
        critical = critical || !panel->critical.empty();
        for (std::size_t kind = 0; kind < occurs.size(); ++kind)
            occurs[kind] = occurs[kind] || (panel->kinds >> kind & 1u) != 0;
        for (const PanelRank& rank : panel->ranks) {
            transfers = transfers || !rank.communication.empty();
            collectives = collectives || std::any_of(rank.lanes.begin(), rank.lanes.end(),
                                                     [](const PanelLane& lane) { return isCollectiveLane(lane.lane); });
        }
        const Schedule* schedule = panel->timeline->schedule().get();
        copies = copies || (schedule != nullptr && schedule->replicas == 1 && schedule->placement.hasCopies());
        chunks = chunks || panel->hasTints;
        pairs = pairs || panel->hasPairs;
    }
    // The kinds that are painted so, as "Full backward (B), input gradient (I)".
    const auto kindsOf = [&occurs](Paint paint) {
        QString out;
        for (const KindTraits& rule : allKinds()) {
            if (rule.colour != paint || !occurs[static_cast<std::size_t>(rule.kind)]) continue;
            const QString name = rule.busy ? kindName(rule) : sentence(rule.title);
            out += out.isEmpty() ? name : u", "_s + name.left(1).toLower() + name.mid(1);
        }
        return out;
    };
    m_entries.clear();
    const auto fill = [this](Paint paint, const QString& text) {
        m_entries.push_back({Entry::Look::Fill, paint, text, 0, {}});
    };
    const auto fillKinds = [&](Paint paint) {
        if (const QString text = kindsOf(paint); !text.isEmpty()) fill(paint, text);
    };
    for (const Paint paint : {Paint::Forward, Paint::Backward, Paint::Weight}) fillKinds(paint);
    if (transfers || collectives)
        fill(Paint::Communication, transfers && collectives ? u"Messages, gathers, reductions"_s
                                   : collectives            ? u"Gathers, reductions"_s
                                                            : u"Communication"_s);
    if (collectives) m_entries.push_back({Entry::Look::Exposed, Paint::Communication, u"Hatched: exposed"_s, 0, {}});
    for (const Paint paint : {Paint::Optimizer, Paint::Other}) fillKinds(paint);
    if (copies) {
        m_entries.push_back({Entry::Look::Fill, Paint::Forward, u"Other tints: second chain"_s, 1, {}});
    } else if (chunks) {
        m_entries.push_back({Entry::Look::Fill, Paint::Forward, u"Other tints: further stages of the rank"_s, 1, {}});
    }
    if (pairs) m_entries.push_back({Entry::Look::Pair, Paint::Forward, u"Issued together"_s, 0, {}});
    std::uint32_t classes = 0;
    for (const auto& panel : panels) classes |= panel->classes;
    for (std::size_t of = 0; of < kernelClassCount; ++of)
        if ((classes >> of & 1u) != 0) {
            const std::string_view title = titleOf(static_cast<KernelClass>(of));
            m_entries.push_back({Entry::Look::Kernels, Paint::Other,
                                 QString::fromUtf8(title.data(), static_cast<qsizetype>(title.size())), 0,
                                 static_cast<KernelClass>(of)});
        }
    if (std::any_of(panels.begin(), panels.end(), [](const auto& panel) {
            return panel->byClass && std::any_of(panel->ranks.begin(), panel->ranks.end(), [](const PanelRank& rank) {
                       return std::any_of(rank.lanes.begin(), rank.lanes.end(),
                                          [](const PanelLane& lane) { return lane.lane == Lane::Other; });
                   });
        }))
        m_entries.push_back({Entry::Look::Ranges, Paint::Other, u"Pale: ranges, a colour for each name"_s, 0, {}});
    const bool any = std::any_of(occurs.begin(), occurs.end(), [](bool one) { return one; });
    const bool ops = std::any_of(panels.begin(), panels.end(), [](const auto& panel) { return !panel->noOps; });
    if (ops && (any || transfers)) m_entries.push_back({Entry::Look::Hatch, Paint::Other, u"Bubble"_s, 0, {}});
    if (critical) m_entries.push_back({Entry::Look::Outline, Paint::Other, u"Critical path"_s, 0, {}});
    if (m_slack) m_entries.push_back({Entry::Look::Faded, Paint::Forward, u"Faded: has slack"_s, 0, {}});
    QStringList words;
    for (const Entry& entry : m_entries) words << entry.text;
    setAccessibleDescription(words.join(u", "_s));
    keepWhole();
    update();
}

void Legend::keepWhole()
{
    const int wanted = static_cast<int>(heightFor(width()));
    if (minimumHeight() != wanted || maximumHeight() != wanted) setFixedHeight(wanted);
}

void Legend::setSlack(bool shown)
{
    if (shown == m_slack) return;
    m_slack = shown;
    const auto at = std::find_if(m_entries.begin(), m_entries.end(),
                                 [](const Entry& entry) { return entry.look == Entry::Look::Faded; });
    if (!shown && at != m_entries.end()) m_entries.erase(at);
    if (shown) m_entries.push_back({Entry::Look::Faded, Paint::Forward, u"Faded: has slack"_s, 0, {}});
    keepWhole();
    update();
}

namespace {

constexpr double lineLeft = 14, firstHeight = 28, lineStep = 20, leastGap = 8;

double widthOf(const Legend::Entry& entry, const QFontMetricsF& metrics)
{
    const bool wide = entry.look == Legend::Entry::Look::Hatch || entry.look == Legend::Entry::Look::Outline;
    return 18 + metrics.horizontalAdvance(entry.text) + (wide ? 4 : 0);
}

} // namespace

std::vector<std::size_t> Legend::lineStarts(double width) const
{
    const QFontMetricsF metrics(fontOf(FontRole::Body));
    double whole = 0;
    for (const Entry& entry : m_entries) whole += widthOf(entry, metrics) + leastGap;
    std::vector<std::size_t> starts{0};
    if (gutterFor(width) + whole - leastGap <= width) return starts;
    double x = lineLeft;
    for (std::size_t i = 0; i < m_entries.size(); ++i) {
        const double needs = widthOf(m_entries[i], metrics);
        if (x > lineLeft && x + needs > width - lineLeft / 2) {
            starts.push_back(i);
            x = lineLeft;
        }
        x += needs + 18;
    }
    return starts;
}

double Legend::heightFor(double width) const
{
    return firstHeight + lineStep * static_cast<double>(lineStarts(width).size() - 1);
}

void Legend::paintTo(QPainter& p, const QRectF& rect, const Theme& theme) const
{
    p.save();
    p.setRenderHint(QPainter::Antialiasing);
    p.fillRect(rect, theme.canvas);
    p.setFont(fontOf(FontRole::Body));
    const QFontMetricsF metrics(p.font());
    double whole = 0;
    for (const Entry& entry : m_entries) whole += widthOf(entry, metrics);
    // With room for one line only, what does not fit is omitted.
    std::vector<std::size_t> starts =
        rect.height() >= heightFor(rect.width()) ? lineStarts(rect.width()) : std::vector<std::size_t>{0};
    const bool single = starts.size() == 1;
    // one line starts where the plot does, if that leaves room for all
    const double gaps = leastGap * static_cast<double>(std::max<std::size_t>(1, m_entries.size()) - 1);
    const bool below = single && gutterFor(rect.width()) + whole + gaps <= rect.width();
    double x = rect.left() + (below ? gutterFor(rect.width()) : lineLeft);
    const double room = rect.right() - x - whole;
    const double gap = !single || m_entries.size() < 2
                           ? 18
                           : std::clamp(room / static_cast<double>(m_entries.size() - 1), leastGap, 18.0);
    double y = single ? rect.center().y() : rect.top() + firstHeight / 2;
    for (std::size_t i = 0; i < m_entries.size(); ++i) {
        const Entry& entry = m_entries[i];
        if (i > 0 && std::find(starts.begin(), starts.end(), i) != starts.end()) {
            x = rect.left() + lineLeft;
            y += lineStep;
        }
        const double width = 18 + metrics.horizontalAdvance(entry.text);
        if (x + width > rect.right()) {
            if (single) break;
            continue;
        }
        QRectF box(x, y - 6, 12, 12);
        p.setPen(Qt::NoPen);
        switch (entry.look) {
        case Entry::Look::Fill:
            p.setBrush(theme.of(entry.paint, entry.tint).fill);
            p.drawRoundedRect(box, 2.5, 2.5);
            paintFillHatch(p, box, theme.of(entry.paint, entry.tint));
            break;
        case Entry::Look::Kernels:
            p.setBrush(theme.of(entry.of).fill);
            p.drawRoundedRect(box, 2.5, 2.5);
            break;
        case Entry::Look::Ranges:
            for (int part = 0; part < 3; ++part)
                p.fillRect(QRectF(box.left() + part * box.width() / 3, box.top(), box.width() / 3, box.height()),
                           theme.ranges[static_cast<std::size_t>(part)].fill);
            break;
        case Entry::Look::Faded: {
            QLinearGradient fade(box.topLeft(), box.topRight());
            fade.setColorAt(0, theme.of(entry.paint).fill);
            fade.setColorAt(1, theme.canvas);
            p.setPen(Qt::NoPen);
            p.setBrush(fade);
            p.drawRoundedRect(box, 2.5, 2.5);
            break;
        }
        case Entry::Look::Pair:
            p.setBrush(theme.of(Paint::Forward).fill);
            p.drawRoundedRect(QRectF(box.left(), box.top(), 12, 5.5), 1.5, 1.5);
            p.setBrush(theme.of(Paint::Backward).fill);
            p.drawRoundedRect(QRectF(box.left(), box.top() + 6.5, 12, 5.5), 1.5, 1.5);
            break;
        case Entry::Look::Exposed: {
            p.setBrush(theme.of(entry.paint).fill);
            p.drawRoundedRect(box, 2.5, 2.5);
            QColor line = theme.of(entry.paint).label;
            line.setAlphaF(0.75F);
            p.setPen(QPen(line, 1));
            const std::vector<QLineF> lines = hatchLines(box.adjusted(1, 1, -1, -1), box.topLeft(), 4);
            p.drawLines(lines.data(), static_cast<int>(lines.size()));
            break;
        }
        case Entry::Look::Hatch:
            box.setWidth(16);
            x += 4;
            paintHatch(p, box.adjusted(1, 1, -1, -1), box.topLeft(), theme); // within its rounded corners
            p.setBrush(Qt::NoBrush); // in some themes its fill is as dark as the background
            p.setPen(QPen(theme.bubbleHatch, 1));
            p.drawRoundedRect(box.adjusted(0.5, 0.5, -0.5, -0.5), 2.5, 2.5);
            break;
        case Entry::Look::Outline:
            box.setWidth(16);
            p.setBrush(Qt::NoBrush);
            p.setPen(QPen(theme.critical, 2));
            p.drawRoundedRect(box.adjusted(1, 1, -1, -1), 2.5, 2.5);
            x += 4;
            break;
        }
        p.setPen(theme.text);
        p.drawText(QPointF(x + 18, y + 4.5), entry.text);
        x += width + gap;
    }
    p.restore();
}

void Legend::paintEvent(QPaintEvent*)
{
    QPainter painter(this);
    paintTo(painter, QRectF(this->rect()), *m_theme);
}

} // namespace stagewright
