#include "widgets/theme.h"

#include <algorithm>
#include <cmath>

#include <QFile>
#include <QFontDatabase>
#include <QGuiApplication>

#include "widgets/literals.h"
#include "widgets/readable.h"

static void initFontResource() { Q_INIT_RESOURCE(stagewright_fonts); }

namespace stagewright {

QColor mixed(const QColor& a, const QColor& b, float share)
{
    return QColor(QColor::fromRgbF(a.redF() * (1 - share) + b.redF() * share,
                                   a.greenF() * (1 - share) + b.greenF() * share,
                                   a.blueF() * (1 - share) + b.blueF() * share)
                      .rgb()); // eight bits, as it is painted
}

// Two tints towards the canvas, then one towards the ink; labels use the more readable of the two inks. High contrast
// goes towards the ink twice: mixing with black would come too close to it.
static void makeTints(Theme& t)
{
    const QColor ink("#14171C"), white("#FFFFFF");
    for (std::size_t p = 0; p < paintCount; ++p) {
        const Fill& plain = t.fills[p];
        t.tints[p].fill(plain);
        if (p > static_cast<std::size_t>(Paint::Weight)) continue; // of work that belongs to no chunk
        const std::pair<QColor, float> plainSteps[] = {{t.canvas, 0.36F}, {t.canvas, 0.60F}, {t.text, 0.42F}};
        const std::pair<QColor, float> strongSteps[] = {{t.text, 0.40F}, {t.text, 0.68F}, {t.text, 0.20F}};
        const auto& steps = t.highContrast ? strongSteps : plainSteps;
        for (std::size_t i = 0; i < 3; ++i) {
            Fill& tint = t.tints[p][i + 1];
            tint.fill = mixed(plain.fill, steps[i].first, steps[i].second);
            tint.edge = i < 2 ? plain.edge : mixed(plain.edge, t.text, 0.42F);
            const double l = luminance(tint.fill);
            tint.label = 1.05 / (l + 0.05) > (l + 0.05) / (luminance(ink) + 0.05) ? white : ink;
        }
    }
}

// Labels in the more readable ink; edges towards the text.
template <std::size_t count>
static void setFills(const Theme& t, std::array<Fill, count>& fills, const std::array<const char*, count>& colours)
{
    const QColor ink(t.highContrast ? "#000000" : "#14171C"), white("#FFFFFF");
    for (std::size_t i = 0; i < count; ++i) {
        Fill& fill = fills[i];
        fill.fill = QColor(QLatin1String(colours[i]));
        const double l = luminance(fill.fill);
        fill.label = 1.05 / (l + 0.05) > (l + 0.05) / (luminance(ink) + 0.05) ? white : ink;
        fill.edge = mixed(fill.fill, t.text, 0.3F);
    }
}

static Theme makeLight()
{
    Theme t;
    const QColor ink("#14171C"), white("#FFFFFF");
    t.fills = {Fill{QColor("#2F5D9C"), white, QColor("#254A7D")}, Fill{QColor("#EE8F2A"), ink, QColor("#C8741A")},
               Fill{QColor("#45C794"), ink, QColor("#2FA177")},   Fill{QColor("#D19FCC"), ink, QColor("#B07BAA")},
               Fill{QColor("#32343E"), white, QColor("#1F2128")}, Fill{QColor("#C4C9D2"), ink, QColor("#9BA2AE")}};
    t.bubbleFill = QColor("#F1F2F5");
    t.bubbleHatch = QColor("#C4C9D2");
    t.critical = QColor("#D7263D");
    t.canvas = t.panel = white;
    t.window = QColor("#F3F4F7");
    t.text = QColor("#1B1F27");
    t.secondary = QColor("#5A6270");
    t.faint = QColor("#656D7A");
    t.separator = QColor("#DDE0E6");
    t.grid = QColor("#ECEEF2");
    t.accent = QColor("#2F5D9C");
    t.onAccent = white;
    t.better = QColor("#1C7C54");
    t.worse = QColor("#D7263D");
    t.pill = white;
    t.pillText = QColor("#5A6270");
    t.track = QColor("#F1F2F5");
    t.hoverLabel = QColor("#14171C");
    t.hoverLabelText = white;
    t.memoryLine = t.accent;
    t.memoryFill = QColor("#D5DEEB");
    t.ghost = QColor("#5A6270");
    setFills(t, t.classes,
             {"#2F5D9C", "#EE8F2A", "#45C794", "#FFE17B", "#8C5A2B", "#9B8AAB", "#920769", "#428FFD", "#ACC2FF",
              "#352831", "#1E9367", "#C4C9D2"});
    setFills(t, t.ranges, {"#C9D8EE", "#F0D9BF", "#C6E3D4", "#DDCBE6", "#EBDFA8", "#CDD3DB"});
    makeTints(t);
    return t;
}

static Theme makeDark()
{
    Theme t;
    t.dark = true;
    const QColor ink("#14171C"), white("#FFFFFF");
    t.fills = {Fill{QColor("#4895EE"), ink, QColor("#3A79C4")}, Fill{QColor("#F7C033"), ink, QColor("#C89A24")},
               Fill{QColor("#8AE2B8"), ink, QColor("#68B892")}, Fill{QColor("#A14492"), white, QColor("#7F3573")},
               Fill{QColor("#C9D0E0"), ink, QColor("#9EA6B8")}, Fill{QColor("#3A414D"), white, QColor("#535C6B")}};
    t.bubbleFill = QColor("#1E222A");
    t.bubbleHatch = QColor("#3A414D");
    t.critical = QColor("#FF4D63");
    t.canvas = QColor("#181B21");
    t.panel = QColor("#1B1F26");
    t.window = ink;
    t.text = QColor("#E8EBF0");
    t.secondary = QColor("#A3ABB9");
    t.faint = QColor("#9099A8");
    t.separator = QColor("#2C323C");
    t.grid = QColor("#232830");
    t.accent = QColor("#4895EE");
    t.onAccent = ink;
    t.better = QColor("#8AE2B8");
    t.worse = QColor("#FF4D63");
    t.pill = QColor("#181B21");
    t.pillText = QColor("#C3C9D4");
    t.track = QColor("#22272F");
    t.hoverLabel = QColor("#E8EBF0");
    t.hoverLabelText = ink;
    t.memoryLine = t.accent;
    t.memoryFill = QColor("#253C59");
    t.ghost = QColor("#C9D0E0");
    setFills(t, t.classes,
             {"#4895EE", "#F7A233", "#58C48F", "#FFF0A0", "#C86B00", "#B367A5", "#CAA0B7", "#9ADCFF", "#536D70",
              "#D8E1D4", "#15956C", "#3A414D"});
    setFills(t, t.ranges, {"#2B3A50", "#4A3D2E", "#2A4439", "#43364A", "#47432C", "#363D48"});
    makeTints(t);
    return t;
}

static Theme makeHighContrast()
{
    Theme t;
    t.dark = t.highContrast = true;
    const QColor black("#000000"), white("#FFFFFF");
    t.fills = {Fill{QColor("#5CABFF"), black, white}, Fill{QColor("#FFC21A"), black, white},
               Fill{QColor("#5CF2B0"), black, white}, Fill{QColor("#E07BE8"), black, white},
               Fill{QColor("#F2F2F2"), black, white}, Fill{QColor("#A6A6A6"), black, white}};
    t.bubbleFill = black;
    t.bubbleHatch = QColor("#8C8C8C");
    t.critical = QColor("#FF7A85");
    t.canvas = t.panel = t.window = black;
    t.text = white;
    t.secondary = QColor("#E6E6E6");
    t.faint = QColor("#C2C2C2");
    t.separator = QColor("#9C9C9C");
    t.grid = QColor("#3C3C3C");
    t.accent = QColor("#7FD0FF");
    t.onAccent = black;
    t.better = QColor("#5CF2B0");
    t.worse = QColor("#FF7A85");
    t.pill = black;
    t.pillText = white;
    t.track = QColor("#242424");
    t.hoverLabel = white;
    t.hoverLabelText = black;
    t.memoryLine = t.accent;
    t.memoryFill = QColor("#2F78AE");
    t.ghost = QColor("#E6E6E6");
    setFills(t, t.classes,
             {"#5CABFF", "#FFB000", "#1ED089", "#FFFFA6", "#B6743D", "#F45DBE", "#CFB1BA", "#97EEFF", "#674FC7",
              "#D6FFE6", "#188A8B", "#768E77"});
    setFills(t, t.ranges, {"#595959", "#4A5C66", "#66583F", "#4C604F", "#5E5068", "#595959"});
    makeTints(t);
    return t;
}

const Theme& Theme::light()
{
    static const Theme theme = makeLight();
    return theme;
}

const Theme& Theme::darkTheme()
{
    static const Theme theme = makeDark();
    return theme;
}

const Theme& Theme::highContrastTheme()
{
    static const Theme theme = makeHighContrast();
    return theme;
}

void hatchKinds(Theme& theme)
{
    for (std::size_t p = 0; p < paintCount; ++p) {
        const auto paint = static_cast<Paint>(p);
        const Fill::Hatch hatch = paint == Paint::Backward        ? Fill::Hatch::Falling
                                  : paint == Paint::Weight        ? Fill::Hatch::Level
                                  : paint == Paint::Communication ? Fill::Hatch::Upright
                                                                  : Fill::Hatch::None;
        for (Fill& fill : theme.tints[p]) fill.hatch = hatch;
        theme.fills[p] = theme.tints[p][0];
    }
}

const Theme& Theme::hatchedTwin() const
{
    static const auto make = [](Theme theme) {
        hatchKinds(theme);
        return theme;
    };
    static const Theme twins[] = {make(light()), make(darkTheme()), make(highContrastTheme())};
    return twins[highContrast ? 2 : dark ? 1 : 0];
}

const Theme& Theme::named(ThemeName name)
{
    return name == ThemeName::HighContrast ? highContrastTheme() : named(name == ThemeName::Dark);
}

QPalette Theme::palette() const
{
    QPalette p;
    p.setColor(QPalette::Window, panel);
    p.setColor(QPalette::WindowText, text);
    p.setColor(QPalette::Base, canvas);
    p.setColor(QPalette::AlternateBase, window);
    p.setColor(QPalette::Text, text);
    p.setColor(QPalette::PlaceholderText, faint);
    p.setColor(QPalette::Button, panel);
    p.setColor(QPalette::ButtonText, text);
    p.setColor(QPalette::BrightText, critical);
    p.setColor(QPalette::Highlight, accent);
    p.setColor(QPalette::HighlightedText, onAccent);
    p.setColor(QPalette::Link, accent);
    p.setColor(QPalette::LinkVisited, accent);
    p.setColor(QPalette::ToolTipBase, panel);
    p.setColor(QPalette::ToolTipText, text);
    p.setColor(QPalette::Light, grid);
    p.setColor(QPalette::Midlight, grid);
    p.setColor(QPalette::Mid, separator);
    p.setColor(QPalette::Dark, faint);
    p.setColor(QPalette::Shadow, QColor("#14171C"));
    for (const auto role : {QPalette::WindowText, QPalette::Text, QPalette::ButtonText}) {
        p.setColor(QPalette::Disabled, role, faint);
    }
    p.setColor(QPalette::Disabled, QPalette::Highlight, separator);
    p.setColor(QPalette::Disabled, QPalette::HighlightedText, faint);
    return p;
}

// The font without contextual alternates, which draw the x of "128x32" as ×: names of kernels and files stay as they are.
// The feature gets a tag that nobody asks for. A file of another form comes back as it is.
static QByteArray plainLetters(QFile&& file)
{
    if (!file.open(QIODevice::ReadOnly)) return {};
    QByteArray font = file.readAll();
    const auto number = [&font](qsizetype at, int bytes) {
        qsizetype out = 0;
        for (qsizetype i = at; i < at + bytes; ++i)
            out = out * 256 + (i < font.size() ? static_cast<unsigned char>(font[i]) : 0);
        return out;
    };
    for (qsizetype table = 0; table < number(4, 2); ++table) {
        const qsizetype entry = 12 + 16 * table;
        if (font.mid(entry, 4) != "GSUB") continue;
        const qsizetype features = number(entry + 8, 4) + number(number(entry + 8, 4) + 6, 2);
        for (qsizetype k = 0; k < number(features, 2); ++k)
            if (const qsizetype tag = features + 2 + 6 * k; font.mid(tag, 4) == "calt") font.replace(tag, 4, "cal0");
    }
    return font;
}

QString loadFonts()
{
    static const QString family = [] {
        initFontResource();
        QString found;
        for (const char* file : {"Inter-Regular.otf", "Inter-Medium.otf", "Inter-SemiBold.otf"}) {
            const int id = QFontDatabase::addApplicationFontFromData(
                plainLetters(QFile(u":/stagewright/fonts/"_s + QLatin1String(file))));
            const QStringList families = id < 0 ? QStringList() : QFontDatabase::applicationFontFamilies(id);
            if (found.isEmpty() && !families.isEmpty()) found = families.front();
        }
        return found.isEmpty() ? QGuiApplication::font().family() : found;
    }();
    return family;
}

QFont fontOf(FontRole role)
{
    QFont font(loadFonts());
    const auto set = [&font](int pixels, QFont::Weight weight) {
        font.setPixelSize(textPixels(pixels));
        font.setWeight(weight);
    };
    switch (role) {
    case FontRole::Body: set(12, QFont::Normal); break;
    case FontRole::Small: set(11, QFont::Normal); break;
    case FontRole::Label: set(12, QFont::DemiBold); break;
    case FontRole::Strong: set(12, QFont::DemiBold); break;
    case FontRole::Rank: set(13, QFont::DemiBold); break;
    case FontRole::Headline: set(30, QFont::DemiBold); break;
    case FontRole::Identifier:
        set(11, QFont::Normal);
        font.setFamilies({u"DejaVu Sans Mono"_s, u"monospace"_s});
        font.setStyleHint(QFont::Monospace);
        break;
    }
    font.setHintingPreference(QFont::PreferNoHinting);
    return font;
}

} // namespace stagewright
