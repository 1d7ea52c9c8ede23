#include "widgets/explore/cut_picture.h"

#include <algorithm>
#include <cmath>

#include <QFontMetricsF>
#include <QPainter>

#include "widgets/explore/plot_frame.h"
#include "widgets/explore/survey_text.h"
#include "widgets/literals.h"

namespace stagewright {

namespace {

constexpr double cutHead = 44, cutNames = 82, cutTimes = 150, cutBetween = 26, cutFoot = 74;
constexpr double leastNamedRow = 13, mostRow = 34;

QColor forwardOnly(const Theme& theme) { return mixed(theme.canvas, theme.of(Paint::Forward).fill, 0.22F); }

QString layerTitle(const CutLayer& layer)
{
    bool number = false;
    const QString name = QString::fromStdString(layer.name);
    name.toInt(&number);
    return number ? u"Layer %1"_s.arg(name) : name == "head"_L1 ? u"The head"_s : u"The embedding"_s;
}

QString replicaList(const std::vector<int>& replicas)
{
    if (replicas.size() == 1) return u"replica %1"_s.arg(replicas.front());
    // neighbours as a range
    QStringList parts;
    for (std::size_t i = 0; i < replicas.size();) {
        std::size_t last = i;
        while (last + 1 < replicas.size() && replicas[last + 1] == replicas[last] + 1) ++last;
        parts << (last > i + 1 ? u"%1 to %2"_s.arg(replicas[i]).arg(replicas[last])
                  : last > i   ? u"%1, %2"_s.arg(replicas[i]).arg(replicas[last])
                               : QString::number(replicas[i]));
        i = last + 1;
    }
    return u"replicas %1"_s.arg(parts.join(u", "_s));
}

} // namespace

struct CutPicture::Place {
    QRectF whole, counts, grid;
    double column = 0, row = 0;
    QRectF cell(int replica, int layer) const
    {
        return {grid.left() + layer * column, grid.top() + replica * row, column, row};
    }
};

CutPicture::CutPicture(QWidget* parent) : CursorPicture(parent)
{
    setObjectName(u"cutPicture"_s);
    setAccessibleName(u"Contributors by layer"_s);
}

void CutPicture::setAnswer(CutAnswer answer, const CutQuestion& question)
{
    m_answer = std::move(answer);
    m_question = question;
    changed();
}

QString CutPicture::meanText() const { return qtText(meanBackward(m_answer, m_question)); }

QString CutPicture::textOf(int mark) const
{
    if (mark < 0 || mark >= marks()) return {};
    const CutLayer& layer = m_answer.rows[static_cast<std::size_t>(mark)];
    const auto count = layer.contributors.size();
    return u"%1: %2 of %3 replicas send gradients (%4). Its gradient is the mean over %5 of the batch."_s
        .arg(layerTitle(layer))
        .arg(count)
        .arg(m_question.replicas)
        .arg(replicaList(layer.contributors), percentText(static_cast<double>(count) / m_question.replicas));
}

TableText CutPicture::table() const { return tableTextOf(contributorTable(m_answer, m_question)); }

CutPicture::Place CutPicture::placeIn(const QRectF& rect) const
{
    Place out;
    out.whole = rect;
    const QRectF inner = rect.adjusted(cutNames, cutHead, -cutTimes, -cutFoot);
    const auto replicas = static_cast<double>(std::max<std::size_t>(1, m_answer.replicas.size()));
    out.row = std::min(mostRow, std::max(10.0, inner.height() * 0.7 - cutBetween) / replicas);
    // rows that are high enough leave the rest
    const double counts = std::round(std::max(30.0, inner.height() - cutBetween - out.row * replicas));
    out.counts = QRectF(inner.left(), inner.top(), inner.width(), counts);
    out.grid = QRectF(inner.left(), inner.top() + counts + cutBetween, inner.width(),
                      std::max(10.0, inner.height() - counts - cutBetween));
    out.column = out.grid.width() / std::max(1, marks());
    return out;
}

QRectF CutPicture::markIn(const QRectF& rect, int mark) const
{
    if (mark < 0 || mark >= marks()) return {};
    const Place place = placeIn(rect);
    return {place.grid.left() + mark * place.column, place.counts.top(), place.column,
            place.cell(m_question.replicas - 1, 0).bottom() - place.counts.top()};
}

void CutPicture::paintCounts(QPainter& p, const Place& place, const Theme& theme) const
{
    const int n = m_question.replicas;
    p.setPen(theme.secondary);
    p.drawText(QRectF(place.whole.left() + 8, place.counts.top() - 18, place.counts.right() - place.whole.left(), 15),
               Qt::AlignLeft | Qt::AlignVCenter, u"Replicas that send gradients"_s);
    const double step = std::max(1.0, plotStep(n, std::max(1, static_cast<int>(place.counts.height() / 24))));
    for (double value = 0; value <= n; value += step) {
        const double y = std::round(place.counts.bottom() - value / n * place.counts.height()) + 0.5;
        p.setPen(QPen(theme.grid, 1));
        p.drawLine(QPointF(place.counts.left(), y), QPointF(place.counts.right(), y));
        p.setPen(theme.secondary);
        p.drawText(QRectF(place.whole.left(), y - 8, cutNames - 7, 16), Qt::AlignRight | Qt::AlignVCenter,
                   QString::number(value));
    }
    for (int layer = 0; layer < marks(); ++layer) {
        const double height = static_cast<double>(m_answer.rows[static_cast<std::size_t>(layer)].contributors.size()) /
                              n * place.counts.height();
        const QRectF bar(place.counts.left() + layer * place.column, place.counts.bottom() - height, place.column,
                         height);
        p.fillRect(place.column >= 5 ? bar.adjusted(1, 0, -1, 0) : bar, theme.of(Paint::Communication).fill);
    }
    p.setPen(QPen(theme.separator, 1));
    p.drawLine(place.counts.bottomLeft(), place.counts.bottomRight());
}

void CutPicture::paintReplicas(QPainter& p, const Place& place, const Theme& theme) const
{
    const QFontMetricsF metrics(p.font());
    const int n = m_question.replicas;
    // every how many rows are named
    const int each = std::max(1, static_cast<int>(std::ceil(leastNamedRow / place.row)));
    p.setPen(theme.secondary);
    p.drawText(QRectF(place.grid.right() + 10, place.grid.top() - 18, cutTimes - 12, 15),
               Qt::AlignLeft | Qt::AlignVCenter, u"Backward · microbatch"_s);
    for (int replica = 0; replica < n; ++replica) {
        const CutReplica& at = m_answer.replicas[static_cast<std::size_t>(replica)];
        int first = 0; // column of the first layer gone back to
        while (first < marks() && m_answer.rows[static_cast<std::size_t>(first)].layer < at.cut) ++first;
        const QRectF row = QRectF(place.cell(replica, 0).topLeft(), QSizeF(place.grid.width(), place.row))
                               .adjusted(0, 0, 0, place.row >= 5 ? -1 : 0);
        const QRectF back(place.cell(replica, first).left(), row.top(), row.right() - place.cell(replica, first).left(),
                          row.height());
        p.fillRect(row, forwardOnly(theme));
        p.fillRect(back, theme.of(Paint::Backward).fill);
        p.fillRect(QRectF(back.left() - (first > 0 ? 1 : 0), row.top(), 2, row.height()), theme.critical); // the cut
        if (replica % each != 0) continue;
        p.setPen(theme.secondary);
        p.drawText(QRectF(place.whole.left(), row.center().y() - 8, cutNames - 7, 16),
                   Qt::AlignRight | Qt::AlignVCenter, u"replica %1"_s.arg(replica));
        p.setPen(theme.text);
        p.drawText(QRectF(place.grid.right() + 10, row.center().y() - 8, cutTimes - 12, 16),
                   Qt::AlignLeft | Qt::AlignVCenter,
                   u"%1 · %2"_s.arg(percentText(at.back), durationText(at.forward + at.backward)));
    }
    if (place.column >= 4) { // columns apart
        p.setPen(QPen(theme.canvas, 1));
        for (int layer = 1; layer < marks(); ++layer) {
            const double x = std::round(place.grid.left() + layer * place.column) + 0.5;
            p.drawLine(QPointF(x, place.grid.top()), QPointF(x, place.cell(n - 1, 0).bottom() - 1));
        }
    }
    // names of the columns: the ends, and numbers between them
    const double y = place.cell(n - 1, 0).bottom() + 3;
    const double step =
        std::max(1.0, plotStep(m_answer.layers, std::max(1, static_cast<int>(place.grid.width() / 44))));
    p.setPen(theme.secondary);
    double free = place.cell(0, 0).center().x() + metrics.horizontalAdvance(u"embedding"_s) / 2 + 6;
    p.drawText(QRectF(place.grid.left() - 40, y, 80 + place.column, 14), Qt::AlignCenter, u"embedding"_s);
    const double headAt = place.cell(0, marks() - 1).center().x(), headHalf = metrics.horizontalAdvance(u"head"_s) / 2;
    for (double layer = 0; layer < m_answer.layers; layer += step) {
        const double x = place.cell(0, static_cast<int>(layer) + 1).center().x(),
                     half = metrics.horizontalAdvance(QString::number(layer)) / 2;
        if (x - half < free || x + half > headAt - headHalf - 6) continue;
        free = x + half + 6;
        p.drawText(QRectF(x - half - 1, y, 2 * half + 2, 14), Qt::AlignCenter, QString::number(layer));
    }
    p.drawText(QRectF(headAt - headHalf - 1, y, 2 * headHalf + 2, 14), Qt::AlignCenter, u"head"_s);
}

void CutPicture::paintTo(QPainter& p, const QRectF& rect, const Theme& theme) const
{
    p.setRenderHint(QPainter::Antialiasing, false);
    p.setFont(fontOf(FontRole::Small));
    if (marks() == 0) {
        p.setPen(theme.secondary);
        p.drawText(rect.adjusted(24, 12, -24, -12), Qt::AlignCenter | Qt::TextWordWrap,
                   QString::fromStdString(m_answer.error));
        return;
    }
    const Place place = placeIn(rect);
    p.setFont(fontOf(FontRole::Strong));
    p.setPen(theme.text);
    p.drawText(QRectF(rect.left() + 8, rect.top() + 4, rect.width() - 16, 18), Qt::AlignLeft | Qt::AlignVCenter,
               u"%1. Not synchronous training."_s.arg(meanText()));
    p.setFont(fontOf(FontRole::Small));
    const QFontMetricsF metrics(p.font());
    paintCounts(p, place, theme);
    paintReplicas(p, place, theme);
    p.setPen(QPen(theme.accent, 1.5));
    p.setBrush(Qt::NoBrush);
    p.drawRect(markIn(rect, cursor()).adjusted(-1, -1, 1, 1));
    double x = place.grid.left();
    const double y = place.cell(m_question.replicas - 1, 0).bottom() + 22;
    const auto mark = [&](const QString& text, const QColor& colour, double width) {
        p.fillRect(QRectF(x + (11 - width) / 2, y + 2, width, 11), colour);
        p.setPen(theme.text);
        const double wide = metrics.horizontalAdvance(text);
        p.drawText(QRectF(x + 16, y, wide + 2, 15), Qt::AlignLeft | Qt::AlignVCenter, text);
        x += 16 + wide + 16;
    };
    mark(u"goes back, sends its gradient"_s, theme.of(Paint::Backward).fill, 11);
    mark(u"the cut"_s, theme.critical, 2);
    mark(u"forward only"_s, forwardOnly(theme), 11);
    p.setPen(theme.secondary);
    p.drawText(QRectF(place.grid.left(), y + 18, rect.right() - place.grid.left() - 10, 34),
               Qt::AlignLeft | Qt::AlignTop | Qt::TextWordWrap, textOf(cursor()));
}

} // namespace stagewright
