// Pictures of what is on screen for papers, slides and web pages: a caption above, the views over one another, the legend
// below, as SVG, PDF or PNG. Painting reads widgets: GUI thread only.
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

enum class PictureKind { Svg, Pdf, Png };
std::optional<PictureKind> pictureKind(const QString& name); // "svg", "PDF", "png"
QString suffixOf(PictureKind kind);                          // "svg"
// The path with the suffix of a kind: one that says another kind of picture is changed, none is added, any other kept before it.
QString pathOfKind(const QString& path, PictureKind kind);
// The kind that a file name's suffix says; Usage where it says none or one other than `wanted`.
Result<PictureKind> pictureKindOf(const QString& path, std::optional<PictureKind> wanted = {});

// From so many slices on the views of a vector picture are embedded as an image.
inline constexpr std::int64_t mostVectorSlices = 50'000;

struct PictureStyle {
    enum class Look { Screen, Paper };
    Look look = Look::Screen;
    // Screen: as many logical pixels wide; height 0: as high as what is in it. PNG has `scale` device pixels for each.
    QSize pixels{1200, 0};
    double scale = 2;
    // Paper: white, in millimetres and points; PNG at `dpi`.
    double widthMm = 178;   // two columns; one column: 84
    double textPoints = 7;  // of body text
    int dpi = 600;
    bool hatched = false;   // kinds are told apart in grey as well
    bool caption = true;
    bool legend = true;
    bool notes = true;
    QStringList without; // names of parts that are left out
    bool operator==(const PictureStyle&) const = default;
};
inline constexpr double oneColumnMm = 84;
inline constexpr double twoColumnsMm = 178;
inline constexpr double oneColumnMostMm = 90; // high; wider ones of narrowView in proportion

struct PaintRequest {
    const Theme& theme;
    bool notes;     // marks of explanations and notes
    bool selection; // what is chosen on screen
};

struct PicturePart {
    enum class Role { View, Legend };
    Role role = Role::View;
    QString name; // of a view: "Timeline"; one that PictureStyle::without names is left out
    std::function<double(double width)> height; // wanted, in logical pixels, at a width
    bool elastic = false;                       // takes what a picture of fixed height leaves
    std::function<void(QPainter&, const QRectF&, const PaintRequest&)> paint;
    std::int64_t slices = 0; // in view
};

struct PictureContent {
    QString title;       // first line of the caption
    QStringList caption; // further lines, wrapped: schedule, costs, clock, provenance
    QString shortTitle;       // of pictures narrower than narrowView; empty: as the others
    QStringList shortCaption;
    std::vector<PicturePart> parts;
    const Theme* theme = &Theme::light(); // of the screen
};

// White, with the light theme's fills, darker hairlines; `hatched`: kinds also differ by hatch, so that grey print tells them.
const Theme& paperTheme(bool hatched);

QSizeF pictureSize(const PictureContent& content, const PictureStyle& style);    // logical pixels
QSizeF pictureMillimetres(const PictureContent& content, const PictureStyle& style); // on paper; of screen pixels at 96 dpi
bool embedsImage(const PictureContent& content, const PictureStyle& style, PictureKind kind);
void paintPicture(QPainter& painter, const PictureContent& content, const PictureStyle& style);
QImage pictureImage(const PictureContent& content, const PictureStyle& style, double scale); // device pixels per logical pixel

// Everything but writing the file. Usage where the picture would be empty or larger than 32,000 pixels a side.
Result<QByteArray> pictureBytes(const PictureContent& content, const PictureStyle& style, PictureKind kind);

} // namespace stagewright
