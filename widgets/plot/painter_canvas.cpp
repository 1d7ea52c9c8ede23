#include "widgets/plot/painter_canvas.h"

#include <cmath>

#include "traces/plot/drawing.h"
#include "widgets/readable.h"
#include "widgets/sentence.h"
#include "widgets/timeline/geometry.h"

namespace stagewright {
namespace {

FontRole roleOf(PlotFont font) { return font == PlotFont::Strong ? FontRole::Strong : FontRole::Small; }

QColor plainColour(PlotHue hue, const Theme& theme)
{
    switch (hue) {
    case PlotHue::Text: return theme.text;
    case PlotHue::Secondary: return theme.secondary;
    case PlotHue::Faint: return theme.faint;
    case PlotHue::Grid: return theme.grid;
    case PlotHue::Separator: return theme.separator;
    case PlotHue::Ground: return theme.canvas;
    case PlotHue::Accent: return theme.accent;
    case PlotHue::Critical: return theme.critical;
    case PlotHue::Better: return theme.better;
    case PlotHue::Worse: return theme.worse;
    case PlotHue::Idle: return theme.bubbleFill;
    case PlotHue::IdleHatch: return theme.bubbleHatch;
    case PlotHue::Memory: return theme.memoryFill;
    case PlotHue::Forward: return theme.of(Paint::Forward).fill;
    case PlotHue::Backward: return theme.of(Paint::Backward).fill;
    case PlotHue::Weight: return theme.of(Paint::Weight).fill;
    case PlotHue::Communication: return theme.of(Paint::Communication).fill;
    case PlotHue::Optimizer: return theme.of(Paint::Optimizer).fill;
    case PlotHue::Delay: return theme.of(Paint::Other).fill;
    }
    return theme.text;
}

QPolygonF polygonOf(std::span<const PlotPlace> places)
{
    QPolygonF out;
    for (const PlotPlace& at : places) out << QPointF(at.x, at.y);
    return out;
}

} // namespace

QColor colourOf(PlotInk ink, const Theme& theme)
{
    const QColor plain = plainColour(ink.hue, theme);
    const QColor colour = ink.strength >= 1 ? plain : mixed(theme.canvas, plain, ink.strength);
    if (!ink.label) return colour;
    // the more readable of the theme's text and what is opposite to it
    return contrast(theme.text, colour) >= contrast(theme.canvas, colour) ? theme.text : theme.canvas;
}

void paintPlot(const Plot& plot, QPainter& painter, const QRectF& rect, const Theme& theme)
{
    painter.save();
    PainterCanvas canvas(&painter, theme);
    PlotDrawing(plot, boxOf(rect), canvas).paint(canvas);
    painter.restore();
}

PainterCanvas::PainterCanvas(QPainter* painter, const Theme& theme)
    : m_painter(painter), m_theme(theme), m_small(fontOf(FontRole::Small)), m_strong(fontOf(FontRole::Strong))
{
}

double PainterCanvas::textWidth(std::string_view text, PlotFont font) const
{
    return (font == PlotFont::Strong ? m_strong : m_small).horizontalAdvance(qtText(text));
}

QPen PainterCanvas::penOf(const PlotStroke& stroke) const
{
    QPen pen(colourOf(stroke.ink, m_theme), stroke.width);
    switch (stroke.dash) {
    case PlotDash::Solid: break;
    case PlotDash::Dash: pen.setDashPattern({3.5, 2}); break;
    case PlotDash::DashDot: pen.setStyle(Qt::DashDotLine); break;
    case PlotDash::Dot: pen.setStyle(Qt::DotLine); break;
    }
    return pen;
}

QBrush PainterCanvas::brushOf(const std::optional<PlotInk>& fill) const
{
    return fill ? QBrush(colourOf(*fill, m_theme)) : QBrush(Qt::NoBrush);
}

void PainterCanvas::line(std::span<const PlotPlace> places, const PlotStroke& stroke)
{
    m_painter->setRenderHint(QPainter::Antialiasing);
    m_painter->setPen(penOf(stroke));
    m_painter->drawPolyline(polygonOf(places));
}

void PainterCanvas::fill(const PlotBox& box, PlotInk ink)
{
    m_painter->setRenderHint(QPainter::Antialiasing, false);
    m_painter->fillRect(rectOf(box), colourOf(ink, m_theme));
}

void PainterCanvas::hatch(const PlotBox& box, PlotInk ink)
{
    m_painter->setRenderHint(QPainter::Antialiasing, false);
    drawHatch(*m_painter, rectOf(box), colourOf(ink, m_theme));
}

void PainterCanvas::polygon(std::span<const PlotPlace> places, std::optional<PlotInk> fill, const PlotStroke& stroke)
{
    m_painter->setRenderHint(QPainter::Antialiasing);
    m_painter->setPen(penOf(stroke));
    m_painter->setBrush(brushOf(fill));
    m_painter->drawPolygon(polygonOf(places));
}

void PainterCanvas::disc(PlotPlace at, double radius, std::optional<PlotInk> fill, const PlotStroke& stroke)
{
    m_painter->setRenderHint(QPainter::Antialiasing);
    m_painter->setPen(penOf(stroke));
    m_painter->setBrush(brushOf(fill));
    m_painter->drawEllipse(QPointF(at.x, at.y), radius, radius);
}

void PainterCanvas::text(PlotPlace at, std::string_view text, PlotFont font, PlotAlign align, PlotInk ink)
{
    const QString words = qtText(text);
    const double wide = textWidth(text, font) + 2;
    const double left = align == PlotAlign::Left ? at.x : align == PlotAlign::Centre ? at.x - wide / 2 : at.x - wide;
    m_painter->setFont(fontOf(roleOf(font)));
    m_painter->setPen(colourOf(ink, m_theme));
    m_painter->drawText(QRectF(left, at.y - 9, wide, 18),
                        (align == PlotAlign::Left     ? Qt::AlignLeft
                         : align == PlotAlign::Centre ? Qt::AlignHCenter
                                                      : Qt::AlignRight) |
                            Qt::AlignVCenter | Qt::TextDontClip,
                        words);
}

} // namespace stagewright
