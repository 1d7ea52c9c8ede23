// Pictures of the screen for papers, slides and web pages: a caption above, the views below each other, the legend at
// the bottom, as SVG, PDF or PNG. Painting reads widgets: GUI thread only.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

#include <QByteArray>
#include <QImage>
#include <QPainter>
#include <QSizeF>
#include <QStringList>

#include "schedules/base/result.h"
#include "widgets/theme.h"

namespace stagewright {

enum class PictureKind {
    Svg,
    Pdf,
    Png,
};
std::optional<PictureKind> pictureKind(const QString& name); // "svg", "PDF", "png"
QString suffixOf(PictureKind kind);                          // "svg"
// The path with the suffix of a kind: another picture suffix is replaced, a missing one added, any other kept before
// it.
QString pathOfKind(const QString& path, PictureKind kind);
// The kind given by a file name's suffix; Usage if it gives none or one other than `wanted`.
Result<PictureKind> pictureKindOf(const QString& path, std::optional<PictureKind> wanted = {});

// With more slices than this, the views of a vector picture are embedded as an image.
inline constexpr std::int64_t mostVectorSlices = 50'000;

struct PictureStyle {
    enum class Look {
        Screen,
        Paper,
    };
    Look look = Look::Screen;
    // Screen: width in logical pixels; height 0: fits the content. PNG has `scale` device pixels for each.
    QSize pixels{1200, 0};
    double scale = 2;
    // Paper: white, in millimetres and points; PNG at `dpi`.
    double widthMm = 178;  // two columns; one column: 84
    double textPoints = 7; // of body text
    int dpi = 600;
    bool hatched = false; // kinds also differ in grey
    bool caption = true;
    bool legend = true;
    bool notes = true;
    QStringList without; // names of omitted parts
    bool operator==(const PictureStyle&) const = default;
};
inline constexpr double oneColumnMm = 84;
inline constexpr double twoColumnsMm = 178;
inline constexpr double oneColumnMostMm = 90; // high; wider ones of narrowView in proportion

struct PaintRequest {
    const Theme& theme;
    bool notes;     // marks of explanations and notes
    bool selection; // the selection on screen
};

struct PicturePart {
    enum class Role {
        View,
        Legend,
    };
    Role role = Role::View;
    QString name;                               // of a view: "Timeline"; omitted if PictureStyle::without names it
    std::function<double(double width)> height; // wanted, in logical pixels, at a width
    bool elastic = false;                       // takes the remaining height of a picture of fixed height
    std::function<void(QPainter&, const QRectF&, const PaintRequest&)> paint;
    std::int64_t slices = 0; // in view
};

struct PictureContent {
    QString title;       // first line of the caption
    QStringList caption; // further lines, wrapped: schedule, costs, clock, provenance
    QString shortTitle;  // for pictures narrower than narrowView; empty: same title
    QStringList shortCaption;
    std::vector<PicturePart> parts;
    const Theme* theme = &Theme::light(); // of the screen
};

// White, with the light theme's fills, darker hairlines; `hatched`: kinds also differ by hatch, so that they differ in
// grey print.
const Theme& paperTheme(bool hatched);

QSizeF pictureSize(const PictureContent& content, const PictureStyle& style); // logical pixels
// on paper; of screen pixels at 96 dpi
QSizeF pictureMillimetres(const PictureContent& content, const PictureStyle& style);
bool embedsImage(const PictureContent& content, const PictureStyle& style, PictureKind kind);
void paintPicture(QPainter& painter, const PictureContent& content, const PictureStyle& style);
// device pixels per logical pixel
QImage pictureImage(const PictureContent& content, const PictureStyle& style, double scale);

// Everything but writing the file. Usage if the picture would be empty or larger than 32,000 pixels per side.
Result<QByteArray> pictureBytes(const PictureContent& content, const PictureStyle& style, PictureKind kind);

} // namespace stagewright
