#include "widgets/explore/mixed_picture.h"

#include <algorithm>
#include <cmath>

#include <QFontMetricsF>
#include <QPainter>

#include "widgets/literals.h"
#include "widgets/timeline/geometry.h"

namespace stagewright {

namespace {

constexpr double mixedHead = 44, mixedFoot = 82, mixedAxis = 40;

QString gigabytes(Bytes bytes) { return fixed(static_cast<double>(bytes) / 1e9, 1) + u" GB"_s; }

} // namespace

struct MixedPicture::Place {
    QRectF whole, area; // area: of the bars
    double slot = 0;    // of a rank
    double most = 1;    // share at the top
    double y(double share) const { return area.bottom() - std::clamp(share, 0.0, most) / most * area.height(); }
    double bar() const { return std::clamp(slot * 0.34, 2.0, 26.0); }
    QRectF of(int rank, int twin, double share) const
    {
        const double left = area.left() + rank * slot + slot / 2 + (twin == 0 ? -bar() - 1 : 1);
        return {left, y(share), bar(), area.bottom() - y(share)};
    }
};

MixedPicture::MixedPicture(QWidget* parent) : CursorPicture(parent)
{
    setObjectName(u"mixedPicture"_s);
    setAccessibleName(u"Shares of batch and state by rank"_s);
}

void MixedPicture::setAnswer(std::shared_ptr<const MixedAnswer> answer, const MixedQuestion& question)
{
    m_answer = std::move(answer);
    m_question = question;
    m_error = m_answer ? QString::fromStdString(m_answer->error) : QString();
    changed();
}

void MixedPicture::setError(const QString& text)
{
    m_answer.reset();
    m_error = text;
    changed();
}

int MixedPicture::marks() const
{
    return m_answer && m_error.isEmpty() ? static_cast<int>(mixedRuleCount) * ranks() : 0;
}

QString MixedPicture::textOf(int mark) const
{
    if (mark < 0 || mark >= marks()) return {};
    const auto rank = static_cast<std::size_t>(mark % ranks());
    const auto rule = static_cast<MixedRule>(mark / ranks());
    const MixedDivision& division = m_answer->divisions[static_cast<std::size_t>(rule)];
    const QString name = u"%1, rank %2"_s.arg(qtText(titleOf(rule))).arg(rank);
    if (!division.good()) return name + u": "_s + QString::fromStdString(division.error);
    const MixedRank& at = division.ranks[rank];
    QString text = u"%1 (speed %2): %3 of %4 samples (%5), computes %6 of a step of %7; owns %8 of the state."_s
                       .arg(name, fixed(m_question.speeds[rank], 2))
                       .arg(at.samples)
                       .arg(m_question.batch)
                       .arg(percentText(static_cast<double>(at.samples) / m_question.batch), durationText(at.compute),
                            durationText(division.step), percentText(at.share));
    text += u' ';
    text += at.limit <= 0 ? u"Its activations and gathered weights alone do not fit."_s
                          : u"Its activations leave room for %1."_s.arg(percentText(std::min(1.0, at.limit)));
    text += u' ' + (at.over() ? u"It needs %1 and has %2."_s : u"Its peak is %1 of %2."_s)
                       .arg(gigabytes(at.peak), gigabytes(at.memory));
    return text;
}

SurveyTable MixedPicture::answer() const { return marks() > 0 ? unevenTable(*m_answer, m_question) : SurveyTable(); }

double MixedPicture::mostShare() const
{
    double most = 0.05;
    for (const MixedDivision& division : m_answer->divisions)
        for (std::size_t rank = 0; rank < division.ranks.size(); ++rank)
            most = std::max({most, static_cast<double>(division.ranks[rank].samples) / m_question.batch,
                             division.ranks[rank].share, m_question.speedShare(rank)});
    return std::min(1.0, most) * 1.12;
}

MixedPicture::Place MixedPicture::placeIn(const QRectF& rect, std::size_t division) const
{
    const double width = (rect.width() - mixedAxis - 8) / mixedRuleCount;
    Place out;
    out.whole = QRectF(rect.left() + mixedAxis + static_cast<double>(division) * width, rect.top() + 4, width,
                       rect.height() - 8);
    out.area = out.whole.adjusted(4, mixedHead, -8, -mixedFoot);
    out.slot = out.area.width() / std::max(1, ranks());
    out.most = mostShare();
    return out;
}

QRectF MixedPicture::markIn(const QRectF& rect, int mark) const
{
    if (mark < 0 || mark >= marks()) return {};
    const Place place = placeIn(rect, static_cast<std::size_t>(mark / ranks()));
    return {place.area.left() + mark % ranks() * place.slot, place.area.top(), place.slot, place.area.height() + 18};
}

void MixedPicture::paintDivision(QPainter& p, const QRectF& rect, std::size_t index, const Theme& theme) const
{
    const MixedDivision& division = m_answer->divisions[index];
    const Place place = placeIn(rect, index);
    p.setFont(fontOf(FontRole::Strong));
    p.setPen(theme.text);
    p.drawText(QRectF(place.area.left(), place.whole.top(), place.area.width(), 18), Qt::AlignLeft | Qt::AlignVCenter,
               qtText(titleOf(static_cast<MixedRule>(index))));
    p.setFont(fontOf(FontRole::Small));
    const QFontMetricsF metrics(p.font());
    const QRectF line(place.area.left(), place.whole.top() + 19, place.area.width(), 16);
    if (!division.good()) {
        p.setPen(theme.secondary);
        p.drawText(QRectF(line.left(), line.top(), line.width(), place.area.bottom() - line.top()),
                   Qt::AlignLeft | Qt::AlignTop | Qt::TextWordWrap, QString::fromStdString(division.error));
        return;
    }
    const auto over =
        std::count_if(division.ranks.begin(), division.ranks.end(), [](const MixedRank& rank) { return rank.over(); });
    QString verdict = over == 0 ? u"%1, fits"_s.arg(durationText(division.step))
                                : u"%1, but does not fit"_s.arg(durationText(division.step));
    p.setPen(over == 0 ? theme.secondary : theme.critical);
    p.drawText(line, Qt::AlignLeft | Qt::AlignVCenter, metrics.elidedText(verdict, Qt::ElideRight, line.width()));
    const Fill& compute = theme.of(Paint::Forward);
    const Fill& state = theme.of(Paint::Optimizer);
    for (int rank = 0; rank < ranks(); ++rank) {
        const MixedRank& at = division.ranks[static_cast<std::size_t>(rank)];
        p.fillRect(place.of(rank, 0, static_cast<double>(at.samples) / m_question.batch), compute.fill);
        const QRectF owned = place.of(rank, 1, at.share);
        p.fillRect(owned, state.fill);
        if (at.over()) {
            const double limit = place.y(at.limit);
            drawHatch(p,
                      QRectF(owned.left(), owned.top(), owned.width(),
                             std::max(0.0, std::min(limit, owned.bottom()) - owned.top())),
                      theme.critical);
        }
        // limits: a line over the bar, a little wider; beyond the top of the scale none binds
        const auto limitLine = [&](int twin, double share, const QColor& colour) {
            if (share > place.most) return;
            const QRectF bar = place.of(rank, twin, share);
            p.setPen(QPen(colour, 2));
            p.drawLine(QPointF(bar.left() - 2, bar.top()), QPointF(bar.right() + 2, bar.top()));
        };
        limitLine(0, m_question.speedShare(static_cast<std::size_t>(rank)), theme.text);
        limitLine(1, std::max(0.0, at.limit), theme.critical);
        p.setPen(theme.secondary);
        const QRectF slot(place.area.left() + rank * place.slot, place.area.bottom() + 3, place.slot, 14);
        p.drawText(slot, Qt::AlignCenter, QString::number(rank));
        if (index * static_cast<std::size_t>(ranks()) + static_cast<std::size_t>(rank) ==
            static_cast<std::size_t>(cursor())) {
            p.setPen(QPen(theme.accent, 1.5));
            p.setBrush(Qt::NoBrush);
            p.drawRect(QRectF(slot.left() + 1, place.area.top(), slot.width() - 2, place.area.height() + 18));
        }
    }
    p.setPen(QPen(theme.separator, 1));
    p.drawLine(place.area.bottomLeft(), place.area.bottomRight());
}

void MixedPicture::paintTo(QPainter& p, const QRectF& rect, const Theme& theme) const
{
    p.setRenderHint(QPainter::Antialiasing, false);
    p.setFont(fontOf(FontRole::Small));
    if (marks() == 0) {
        p.setPen(theme.secondary);
        p.drawText(rect.adjusted(24, 12, -24, -12), Qt::AlignCenter | Qt::TextWordWrap,
                   m_error.isEmpty() ? u"simulating…"_s : m_error);
        return;
    }
    const QFontMetricsF metrics(p.font());
    const Place first = placeIn(rect, 0);
    const double step = first.most > 0.6 ? 0.25 : first.most > 0.25 ? 0.1 : 0.05;
    for (double share = 0; share <= first.most; share += step) {
        const double y = std::round(first.y(share)) + 0.5;
        p.setPen(QPen(theme.grid, 1));
        p.drawLine(QPointF(first.area.left(), y), QPointF(placeIn(rect, mixedRuleCount - 1).area.right(), y));
        p.setPen(theme.secondary);
        p.drawText(QRectF(rect.left(), y - 8, mixedAxis - 2, 16), Qt::AlignRight | Qt::AlignVCenter,
                   percentText(share, 0));
    }
    for (std::size_t division = 0; division < mixedRuleCount; ++division) paintDivision(p, rect, division, theme);
    // what the marks mean, then the chosen rank in words
    double x = first.area.left();
    const double y = first.area.bottom() + 24;
    const auto mark = [&](const QString& text, const auto& draw) {
        draw(QRectF(x, y + 2, 11, 11));
        p.setPen(theme.text);
        const double width = metrics.horizontalAdvance(text);
        p.drawText(QRectF(x + 16, y, width + 2, 15), Qt::AlignLeft | Qt::AlignVCenter, text);
        x += 16 + width + 16;
    };
    const auto filled = [&](const QColor& colour) {
        return [&p, colour](const QRectF& box) { p.fillRect(box, colour); };
    };
    const auto lined = [&](const QColor& colour) {
        return [&p, colour](const QRectF& box) {
            p.setPen(QPen(colour, 2));
            p.drawLine(QPointF(box.left(), box.center().y()), QPointF(box.right(), box.center().y()));
        };
    };
    mark(u"share of the batch"_s, filled(theme.of(Paint::Forward).fill));
    mark(u"share of the speed"_s, lined(theme.text));
    mark(u"share of the state"_s, filled(theme.of(Paint::Optimizer).fill));
    mark(u"room in its memory"_s, lined(theme.critical));
    p.setPen(theme.secondary);
    p.drawText(QRectF(first.area.left(), y + 20, rect.right() - first.area.left() - 10, 34),
               Qt::AlignLeft | Qt::AlignTop | Qt::TextWordWrap, textOf(cursor()));
}

} // namespace stagewright
