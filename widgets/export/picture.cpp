#include "widgets/export/picture.h"

#include <algorithm>
#include <cmath>

#include <QBuffer>
#include <QFileInfo>
#include <QFontMetricsF>
#include <QPaintEngine>
#include <QPdfWriter>
#include <QSvgGenerator>

#include "schedules/base/shown_text.h"
#include "widgets/literals.h"
#include "widgets/numbers.h"
#include "widgets/sentence.h"
#include "widgets/timeline/geometry.h"

namespace stagewright {
namespace {

constexpr double margin = 14; // beside the caption
constexpr double captionTop = 9;
constexpr double captionBottom = 7;
constexpr double bodyPixels = 12;   // FontRole::Body
constexpr double mostSide = 32'000; // px of an image

double lineHeight(FontRole role) { return std::ceil(QFontMetricsF(fontOf(role)).lineSpacing()) + 1; }

// A line of the caption broken to fit, at spaces.
QStringList wrapped(const QString& text, FontRole role, double width)
{
    const QFontMetricsF metrics(fontOf(role));
    QStringList lines;
    QString line;
    for (const QString& word : text.split(u' ', Qt::SkipEmptyParts)) {
        const QString longer = line.isEmpty() ? word : line + u' ' + word;
        if (!line.isEmpty() && metrics.horizontalAdvance(longer) > width) {
            lines << line;
            line = word;
        } else {
            line = longer;
        }
    }
    if (!line.isEmpty()) lines << line;
    return lines;
}

struct CaptionLines {
    QStringList title;
    QStringList rest;
    double height = 0;
};

CaptionLines captionLines(const PictureContent& content, const PictureStyle& style, double width)
{
    CaptionLines lines;
    if (!style.caption) return lines;
    const bool narrow = width < narrowView && !content.shortTitle.isEmpty();
    lines.title = wrapped(shownName(narrow ? content.shortTitle : content.title), FontRole::Strong, width - 2 * margin);
    for (const QString& line : narrow ? content.shortCaption : content.caption)
        lines.rest << wrapped(shownName(line), FontRole::Small, width - 2 * margin);
    lines.height = captionTop + captionBottom + static_cast<double>(lines.title.size()) * lineHeight(FontRole::Strong) +
                   static_cast<double>(lines.rest.size()) * lineHeight(FontRole::Small);
    return lines;
}

const Theme& themeOf(const PictureContent& content, const PictureStyle& style)
{
    return style.look == PictureStyle::Look::Paper ? paperTheme(style.hatched) : *content.theme;
}

// Points on paper of one logical pixel.
double pointsPerPixel(const PictureStyle& style)
{
    return style.look == PictureStyle::Look::Paper ? style.textPoints / bodyPixels : 72.0 / 96.0;
}

double logicalWidth(const PictureStyle& style)
{
    if (style.look == PictureStyle::Look::Screen) return std::max(1, style.pixels.width());
    return std::max(1.0, style.widthMm / 25.4 * 72 / pointsPerPixel(style));
}

bool shown(const PicturePart& part, const PictureStyle& style)
{
    return part.role == PicturePart::Role::Legend ? style.legend : !style.without.contains(part.name);
}

// In a narrow picture every view is.
bool isElastic(const PicturePart& part, double width)
{
    return part.elastic || (width < narrowView && part.role == PicturePart::Role::View);
}

bool isVector(const QPainter& painter)
{
    return painter.paintEngine() != nullptr && painter.paintEngine()->type() != QPaintEngine::Raster;
}

// A view with too many slices for a vector file, in device pixels of print.
void paintEmbedded(QPainter& painter, const QRectF& rect, const PicturePart& part, const PaintRequest& request,
                   double scale)
{
    const double fits = std::min(scale, mostSide / std::max({1.0, rect.width(), rect.height()}));
    QImage image((rect.size() * fits).toSize(), QImage::Format_RGB32);
    image.setDevicePixelRatio(fits);
    image.fill(request.theme.canvas);
    {
        QPainter inner(&image);
        inner.setRenderHints(QPainter::Antialiasing | QPainter::TextAntialiasing);
        part.paint(inner, QRectF(QPointF(0, 0), rect.size()), request);
    }
    image.setDevicePixelRatio(1);
    painter.drawImage(rect, image);
}

double imageScale(const PictureStyle& style)
{
    return style.look == PictureStyle::Look::Paper ? pointsPerPixel(style) * style.dpi / 72 : style.scale;
}

Error tooLarge(const QSizeF& size)
{
    return {ErrorCode::Usage,
            "a picture of " + std::to_string(std::lround(size.width())) + " × " +
                std::to_string(std::lround(size.height())) + " pixels would have more than " +
                std::to_string(std::lround(mostSide)) + " per side",
            "give a smaller width, or use svg or pdf"};
}

QByteArray svgBytes(const PictureContent& content, const PictureStyle& style)
{
    QByteArray bytes;
    QBuffer buffer(&bytes);
    buffer.open(QIODevice::WriteOnly);
    const QSizeF size = pictureSize(content, style);
    {
        QSvgGenerator generator;
        generator.setOutputDevice(&buffer);
        generator.setResolution(7200); // sizes below are in hundredths of a point
        generator.setSize((size * pointsPerPixel(style) * 100).toSize());
        generator.setViewBox(QRectF(QPointF(), size));
        generator.setTitle(shownName(content.title).toHtmlEscaped()); // the generator writes it as it is
        generator.setDescription(shownName(content.caption.join(u'\n')).toHtmlEscaped());
        QPainter painter(&generator);
        paintPicture(painter, content, style);
    }
    // names in the parts too: XML has no control characters
    bytes = QByteArray::fromStdString(shownText({bytes.constData(), static_cast<std::size_t>(bytes.size())}));
    return bytes.replace("font-family=\"Inter\"", "font-family=\"Inter, Helvetica, Arial, sans-serif\"");
}

QByteArray pdfBytes(const PictureContent& content, const PictureStyle& style)
{
    QByteArray bytes;
    QBuffer buffer(&bytes);
    buffer.open(QIODevice::WriteOnly);
    const QSizeF points = pictureSize(content, style) * pointsPerPixel(style);
    QPdfWriter writer(&buffer);
    writer.setTitle(shownName(content.title));
    writer.setCreator(u"Stagewright"_s);
    writer.setResolution(1200);
    writer.setPageSize(QPageSize(points, QPageSize::Point, QString(), QPageSize::ExactMatch));
    writer.setPageMargins(QMarginsF(0, 0, 0, 0));
    QPainter painter(&writer);
    const double scale = pointsPerPixel(style) * 1200 / 72;
    painter.scale(scale, scale);
    paintPicture(painter, content, style);
    painter.end();
    return bytes;
}

} // namespace

std::optional<PictureKind> pictureKind(const QString& name)
{
    for (const PictureKind kind : {PictureKind::Svg, PictureKind::Pdf, PictureKind::Png})
        if (name.compare(suffixOf(kind), Qt::CaseInsensitive) == 0) return kind;
    return std::nullopt;
}

QString suffixOf(PictureKind kind)
{
    return kind == PictureKind::Svg ? u"svg"_s : kind == PictureKind::Pdf ? u"pdf"_s : u"png"_s;
}

QString pathOfKind(const QString& path, PictureKind kind)
{
    const QString suffix = QFileInfo(path).suffix();
    const auto said = pictureKind(suffix);
    if (said == kind) return path;
    const QString base = said                  ? path.left(path.size() - suffix.size() - 1)
                         : path.endsWith(u'.') ? path.left(path.size() - 1)
                                               : path;
    return base + u'.' + suffixOf(kind);
}

Result<PictureKind> pictureKindOf(const QString& path, std::optional<PictureKind> wanted)
{
    const QString suffix = QFileInfo(path).suffix();
    const auto said = pictureKind(suffix);
    if (wanted && (said == wanted || suffix.isEmpty())) return *wanted;
    if (wanted && said)
        return fail(ErrorCode::Usage,
                    "file " + path.toStdString() + ": the format is " + suffixOf(*wanted).toStdString() +
                        ", the suffix " + suffix.toStdString(),
                    "make them match");
    if (wanted) return *wanted; // a suffix of no picture format
    if (!said)
        return fail(ErrorCode::Usage, "file " + path.toStdString() + ": unknown picture format",
                    "use the suffix .png, .svg or .pdf");
    return *said;
}

const Theme& paperTheme(bool hatched)
{
    const auto make = [](bool withHatch) {
        Theme t = Theme::light();
        t.text = QColor("#000000");
        t.secondary = QColor("#333842");
        t.faint = QColor("#5A6270");
        t.separator = QColor("#9BA2AE");
        t.grid = QColor("#D3D7DE");
        t.bubbleFill = QColor("#FFFFFF");
        t.bubbleHatch = QColor("#A4ABB7");
        t.track = QColor("#FFFFFF");
        t.window = QColor("#FFFFFF");
        t.pillText = QColor("#333842");
        t.ghost = QColor("#333842");
        for (std::size_t p = 0; p < paintCount; ++p) {
            for (Fill& fill : t.tints[p]) fill.edge = fill.edge.darker(125);
            t.fills[p] = t.tints[p][0];
        }
        if (withHatch) hatchKinds(t);
        return t;
    };
    static const Theme plain = make(false), hatch = make(true);
    return hatched ? hatch : plain;
}

QSizeF pictureSize(const PictureContent& content, const PictureStyle& style)
{
    const double width = logicalWidth(style);
    if (style.look == PictureStyle::Look::Screen && style.pixels.height() > 0)
        return {width, static_cast<double>(style.pixels.height())};
    double height = captionLines(content, style, width).height;
    double longLegend = 0; // what it takes beyond three lines, so that the views have theirs
    for (const PicturePart& part : content.parts) {
        if (!shown(part, style)) continue;
        height += part.height(width);
        if (part.role == PicturePart::Role::Legend) longLegend = std::max(0.0, part.height(width) - 68);
    }
    // the views share the rest
    if (style.look == PictureStyle::Look::Paper && width < narrowView)
        height = std::min(height, std::floor(width * oneColumnMostMm / oneColumnMm) + longLegend);
    return {width, std::ceil(std::max(1.0, height))};
}

QSizeF pictureMillimetres(const PictureContent& content, const PictureStyle& style)
{
    return pictureSize(content, style) * (pointsPerPixel(style) * 25.4 / 72);
}

bool embedsImage(const PictureContent& content, const PictureStyle& style, PictureKind kind)
{
    if (kind == PictureKind::Png) return false;
    return std::any_of(content.parts.begin(), content.parts.end(),
                       [&](const PicturePart& part) { return shown(part, style) && part.slices > mostVectorSlices; });
}

void paintPicture(QPainter& painter, const PictureContent& content, const PictureStyle& style)
{
    const Theme& theme = themeOf(content, style);
    const bool paper = style.look == PictureStyle::Look::Paper;
    const PaintRequest request{theme, style.notes, !paper};
    const QSizeF size = pictureSize(content, style);
    painter.fillRect(QRectF(QPointF(), size), theme.canvas);
    const CaptionLines caption = captionLines(content, style, size.width());
    double y = captionTop;
    const auto print = [&](const QStringList& lines, FontRole role, const QColor& colour) {
        painter.setFont(fontOf(role));
        painter.setPen(colour);
        const double ascent = QFontMetricsF(painter.font()).ascent();
        for (const QString& line : lines) {
            painter.drawText(QPointF(margin, y + ascent), line);
            y += lineHeight(role);
        }
    };
    print(caption.title, FontRole::Strong, theme.text);
    print(caption.rest, FontRole::Small, theme.secondary);

    // In a picture of fixed height the elastic parts share the surplus or deficit in proportion to their preferred
    // heights.
    double fixedHeight = caption.height, elastic = 0;
    for (const PicturePart& part : content.parts) {
        if (!shown(part, style)) continue;
        (isElastic(part, size.width()) ? elastic : fixedHeight) += part.height(size.width());
    }
    const double share = elastic > 0 ? std::max(0.0, size.height() - fixedHeight) / elastic : 1;
    double top = caption.height;
    bool first = true;
    for (const PicturePart& part : content.parts) {
        if (!shown(part, style)) continue;
        const double height = part.height(size.width()) * (isElastic(part, size.width()) ? share : 1);
        const QRectF rect(0, top, size.width(), height);
        top += height;
        if (height < 1) continue;
        painter.save();
        if (isVector(painter) && part.slices > mostVectorSlices)
            paintEmbedded(painter, rect, part, request, imageScale(style));
        else
            part.paint(painter, rect, request);
        painter.restore();
        if (!first && part.role == PicturePart::Role::View)
            painter.fillRect(QRectF(0, rect.top(), size.width(), 1), theme.separator);
        first = false;
    }
}

QImage pictureImage(const PictureContent& content, const PictureStyle& style, double scale)
{
    const QSizeF size = pictureSize(content, style);
    QImage image((size * scale).toSize().expandedTo({1, 1}), QImage::Format_RGB32);
    image.setDevicePixelRatio(scale);
    image.fill(themeOf(content, style).canvas);
    QPainter painter(&image);
    painter.setRenderHints(QPainter::Antialiasing | QPainter::TextAntialiasing);
    paintPicture(painter, content, style);
    return image;
}

Result<QByteArray> pictureBytes(const PictureContent& content, const PictureStyle& style, PictureKind kind)
{
    const auto isView = [&](const PicturePart& part) {
        return part.role == PicturePart::Role::View && shown(part, style);
    };
    if (std::none_of(content.parts.begin(), content.parts.end(), isView))
        return fail(ErrorCode::Usage, "nothing to draw", "choose the timeline, the memory or both");
    if (kind == PictureKind::Svg) return svgBytes(content, style);
    if (kind == PictureKind::Pdf) return pdfBytes(content, style);
    const double scale = imageScale(style);
    const QSizeF size = pictureSize(content, style) * scale;
    if (std::max(size.width(), size.height()) > mostSide) return tl::unexpected(tooLarge(size));
    QImage image = pictureImage(content, style, scale);
    const double dots = style.look == PictureStyle::Look::Paper ? style.dpi : 96 * scale;
    image.setDotsPerMeterX(static_cast<int>(std::lround(dots / 0.0254)));
    image.setDotsPerMeterY(image.dotsPerMeterX());
    image.setText(u"Title"_s, content.title);
    image.setText(u"Description"_s, content.caption.join(u'\n'));
    QByteArray bytes;
    QBuffer buffer(&bytes);
    buffer.open(QIODevice::WriteOnly);
    if (!image.save(&buffer, "PNG")) return fail(ErrorCode::Failed, "the picture could not be encoded as png");
    return bytes;
}

} // namespace stagewright
