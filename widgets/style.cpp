#include "widgets/style.h"

#include <QLabel>
#include <QRegularExpression>
#include <QStyle>
#include <QVariant>

#include "widgets/literals.h"
#include "widgets/readable.h"
#include "widgets/table_copy.h"

// Outside any namespace, as Q_INIT_RESOURCE demands.
static void initPanelResources() { Q_INIT_RESOURCE(stagewright_panel); }

namespace stagewright {
namespace {

// The sheet with @names for colours. Sizes are logical pixels.
constexpr const char* sheet = R"(
* { outline: none; }
QMainWindow, QDialog { background: @window; }
QDialogButtonBox, QMessageBox { dialogbuttonbox-buttons-have-icons: 0; button-layout: 3; }
QWidget { color: @text; font-family: "@family"; }
QMenuBar, QMenu, QToolBar QToolButton, QStatusBar { font-size: 12px; }
QToolTip { background: @panel; color: @text; border: 1px solid @separator; padding: 5px 7px; }

QMenuBar { background: @panel; border: none; border-bottom: 1px solid @separator; padding: 3px 6px; }
QMenuBar::item { background: transparent; color: @secondary; padding: 5px 10px; border-radius: 5px; }
QMenuBar::item:selected { background: @hover; color: @text; }
QMenu { background: @panel; border: 1px solid @separator; padding: 5px; }
QMenu::item { padding: 5px 26px 5px 22px; border-radius: 4px; }
QMenu::item:selected { background: @tint; color: @text; }
QMenu::item:disabled { color: @faint; }
QMenu::separator { height: 1px; background: @separator; margin: 5px 8px; }
QMenu::indicator { width: 12px; height: 12px; left: 6px; }

QToolBar { background: @panel; border: none; border-bottom: 1px solid @separator; padding: 8px; spacing: 6px; }
QToolBar QToolButton, QPushButton { background: @panel; color: @text; border: 1px solid @border; border-radius: 6px;
    padding: 5px 12px; font-weight: 500; min-height: 16px; }
QToolBar QToolButton:hover, QPushButton:hover { background: @hover; }
QToolBar QToolButton:pressed, QPushButton:pressed { background: @tint; }
QToolBar QToolButton:checked, QPushButton:checked { background: @tint; color: @accentText; border-color: @accent; }
QToolBar QToolButton:disabled, QPushButton:disabled { color: @faint; background: @panel; border-color: @separator; }
QToolBar QToolButton:focus, QPushButton:focus { border: 2px solid @accent; padding: 4px 11px; }
QToolBar QToolButton#primary, QPushButton#primary { background: @accent; color: @onAccent; border-color: @accent; }
QToolBar QToolButton#primary:focus, QPushButton#primary:focus { border-color: @text; }
QToolBar QToolButton#primary:hover, QPushButton#primary:hover { background: @accentHover; }
QToolBar QToolButton#primary:disabled, QPushButton#primary:disabled { background: @groove; color: @faint; border-color: @groove; }
QToolBar QToolButton::menu-indicator { image: none; }
QToolBar QToolButton#qt_toolbar_ext_button { padding: 0; border: none; background: transparent; qproperty-icon: url(@arrow); }
QLineEdit QToolButton { padding: 0; margin: 0; border: none; background: transparent; min-height: 0; min-width: 0; }
QPushButton#flat { border-color: transparent; background: transparent; color: @accentText; padding: 4px 6px; }
QPushButton#flat:focus { border: 1px solid @accent; padding: 4px 6px; }
QPushButton#link { border: none; border-left: 0; background: transparent; color: @accentText; padding: 0; margin: 0; text-align: left; }
QPushButton#link:disabled { color: @text; }
QPushButton#link:hover { text-decoration: underline; }
QPushButton#link:focus { text-decoration: underline; background: @tint; }
QLabel#dropSign { background: @panel; color: @text; border: 2px dashed @accent; border-radius: 8px; font-size: 15px; }
QPushButton#flat:hover { background: @hover; }
QPushButton#flat:disabled { color: @faint; }
QPushButton#crumb, QPushButton#crumbHere { border: 1px solid transparent; background: transparent; color: @secondary; padding: 2px 5px; font-weight: 400; }
QPushButton#crumbHere { color: @text; font-weight: 600; }
QPushButton#crumb:hover { color: @accentText; }
QPushButton#crumb:focus, QPushButton#crumbHere:focus { border: 1px solid @accent; padding: 2px 5px; }

QLineEdit, QSpinBox, QDoubleSpinBox, QComboBox, QPlainTextEdit { background: @field; color: @text; border: 1px solid @fieldLine;
    border-radius: 6px; padding: 4px 8px; selection-background-color: @accent; selection-color: @onAccent; }
QLineEdit, QSpinBox, QDoubleSpinBox, QComboBox { min-height: 16px; }
QLineEdit:focus, QSpinBox:focus, QDoubleSpinBox:focus, QComboBox:focus, QPlainTextEdit:focus { border-color: @accent; }
QLineEdit[fault="true"], QSpinBox[fault="true"], QComboBox[fault="true"], QListView[fault="true"] { border-color: @critical; }
QLineEdit:disabled, QSpinBox:disabled, QComboBox:disabled { color: @faint; }
QComboBox::drop-down { border: none; width: 20px; }
QComboBox::down-arrow { image: url(@arrow); width: 9px; height: 9px; }
QComboBox QAbstractItemView { background: @panel; border: 1px solid @separator; selection-background-color: @tint;
    selection-color: @text; padding: 4px; }
QSpinBox::up-button, QSpinBox::down-button, QDoubleSpinBox::up-button, QDoubleSpinBox::down-button { width: 0px; border: none; }
QSlider::groove:horizontal { background: @groove; height: 4px; border-radius: 2px; }
QSlider::sub-page:horizontal { background: @accent; border-radius: 2px; }
QSlider::handle:horizontal { background: @panel; border: 2px solid @accent; width: 10px; height: 10px; margin: -5px 0; border-radius: 7px; }
QSlider::handle:horizontal:focus { background: @accent; }
QCheckBox { spacing: 7px; }
QListView::indicator, QTableView::indicator, QTreeView::indicator, QCheckBox::indicator { width: 13px; height: 13px; border: 1px solid @fieldLine; border-radius: 3px; background: @panel; }
QListView::indicator:checked, QTableView::indicator:checked, QTreeView::indicator:checked, QCheckBox::indicator:checked { background: @accent; border-color: @accent; image: url(@check); }

QTreeView, QListView, QListWidget { background: @panel; border: none; }
QListWidget#boxed { background: @field; border: 1px solid @fieldLine; border-radius: 6px; padding: 3px; }
QListWidget#boxed::item, QTreeWidget#tableNames::item { padding: 3px 4px; border-radius: 4px; }
QListWidget#boxed::item:selected, QTreeWidget#tableNames::item:selected { background: @tint; color: @text; }
QTreeView::item:selected { background: @tint; color: @text; }
QScrollArea { border: none; background: @panel; }
QScrollArea#recordFields { background: transparent; }
QWidget#panel, QWidget#panelBody { background: @panel; }
QWidget#canvas { background: @canvas; }
QFrame#playbackBar { background: @panel; border: none; border-top: 1px solid @separator; }
QFrame#rule { background: @separator; border: none; max-height: 1px; min-height: 1px; }
QSplitter::handle { background: @separator; }
QSplitter::handle:hover { background: @accent; }
QScrollBar:vertical { background: transparent; width: 10px; margin: 0; }
QScrollBar:horizontal { background: transparent; height: 10px; margin: 0; }
QScrollBar::handle { background: @border; border-radius: 3px; min-height: 28px; min-width: 28px; margin: 2px; }
QScrollBar::handle:hover { background: @faint; }
QScrollBar::add-line, QScrollBar::sub-line { width: 0; height: 0; }
QScrollBar::add-page, QScrollBar::sub-page { background: transparent; }

QDockWidget { background: @panel; color: @secondary; titlebar-close-icon: url(@close); }
QDockWidget::title { background: @panel; border-top: 1px solid @separator; border-bottom: 1px solid @separator; padding: 5px 10px; text-align: left; }
QDockWidget::close-button { border: none; background: transparent; padding: 2px; }
QDockWidget::close-button:hover { background: @hover; border-radius: 4px; }
QMainWindow::separator { background: @separator; width: 1px; height: 1px; }
QMainWindow::separator:hover { background: @accent; }
QTabBar::tab { background: @panel; color: @secondary; border: none; border-bottom: 2px solid transparent; padding: 5px 12px; }
QDialog QTabBar::tab { background: transparent; }
QTabBar#inspectorTabs { background: @panel; }
QTabBar#inspectorTabs::tab { padding: 7px 9px 5px 9px; }
QTabBar::tab:selected { color: @text; border-bottom-color: @accent; }
QTabBar::tab:focus { color: @accentText; }
QTableView { background: @panel; border: 1px solid transparent; gridline-color: @separator; selection-background-color: @tint; selection-color: @text; }
QTableView::item { padding: 2px 6px; border: none; }
QTableView::item:selected { background: @tint; color: @text; }
QTableView:focus, QTreeView#boxed:focus, QListView#boxed:focus { border-color: @accent; }
QHeaderView::section { background: @panel; color: @secondary; border: none; border-bottom: 1px solid @separator; padding: 4px 6px; }
QHeaderView::section:checked { font-weight: 600; }
QHeaderView::up-arrow, QHeaderView::down-arrow { subcontrol-origin: border; subcontrol-position: top center; width: 10px; height: 8px; margin-top: 1px; }
QTableCornerButton::section { background: @panel; border: none; }
QListView#boxed, QTreeView#boxed { background: @field; border: 1px solid @fieldLine; border-radius: 6px; padding: 3px; }
QListView#boxed::item { padding: 3px 4px; border-radius: 4px; }
QListView#boxed::item:selected { background: @tint; color: @text; }
QCheckBox:focus, QRadioButton:focus { color: @accentText; }
QCheckBox::indicator:focus, QListView::indicator:focus { border: 2px solid @accent; width: 11px; height: 11px; }
QFrame#palette { background: @panel; border: 1px solid @border; border-radius: 8px; }
QStatusBar { background: @panel; color: @secondary; border-top: 1px solid @separator; min-height: 22px; }
QStatusBar::item { border: none; }
QStatusBar QLabel { color: @secondary; padding: 0 6px; }
QProgressBar { background: @groove; border: none; border-radius: 3px; max-height: 6px; min-height: 6px; }
QProgressBar::chunk { background: @accent; border-radius: 3px; }

QLabel[role="title"] { font-weight: 600; }
QLabel[role="secondary"] { color: @secondary; }
QLabel[role="faint"] { color: @faint; }
QLabel[role="value"] { color: @text; }
QLabel[role="strong"] { font-weight: 600; }
QLabel[role="better"] { color: @better; font-weight: 600; }
QLabel[role="worse"] { color: @worse; font-weight: 600; }
QLabel[role="right"] { color: @better; }
QLabel[role="wrong"] { color: @worse; }
QLabel[role="question"] { font-size: 18px; font-weight: 600; }
QLabel[role="formula"] { color: @secondary; font-size: 11px; }
QWidget#shelf { background: @canvas; }
QWidget#shelfDetail { background: @panel; border: none; border-left: 1px solid @separator; }
QLabel[role="bigtitle"] { font-size: 22px; font-weight: 600; }
QLabel[role="identifier"] { font-family: "DejaVu Sans Mono", monospace; font-size: 11px; color: @secondary; }
QLabel[role="code"] { font-family: "DejaVu Sans Mono", monospace; font-size: 11px; color: @secondary; background: @field;
    border: 1px solid @separator; border-radius: 6px; padding: 7px 9px; }
QFrame#banner { background: @bannerFill; border: 1px solid @border; border-radius: 6px; }
QFrame#banner[tone="error"] { background: @errorFill; border-left: 3px solid @critical; }
QLabel#findFault { background: @errorFill; color: @text; border: 1px solid @critical; border-radius: 6px; }
QFrame#banner[tone="note"] { background: @tint; border-left: 3px solid @accent; }
QFrame#banner[tone="edit"] { background: @tint; border-left: 3px solid @accent; }
QFrame#card { background: @canvas; border: 1px solid @separator; border-radius: 8px; }
)";

QString hex(const QColor& color) { return color.name(QColor::HexRgb); }

QColor mix(const QColor& a, const QColor& b, double share)
{
    return QColor::fromRgbF(static_cast<float>(a.redF() * (1 - share) + b.redF() * share),
                            static_cast<float>(a.greenF() * (1 - share) + b.greenF() * share),
                            static_cast<float>(a.blueF() * (1 - share) + b.blueF() * share));
}

} // namespace

QList<std::pair<QString, QColor>> styleColours(const Theme& t)
{
    // longer names first: "@accentText" before "@accent"
    return {
        {"@accentText", t.dark ? t.accent.lighter(125) : t.accent},
        {"@accentHover", mix(t.accent, t.dark ? QColor(Qt::white) : QColor(Qt::black), 0.12)},
        {"@accent", t.accent},
        {"@onAccent", t.onAccent},
        {"@window", t.window},
        {"@panel", t.panel},
        {"@canvas", t.canvas},
        {"@text", t.text},
        {"@secondary", t.secondary},
        {"@faint", t.faint},
        {"@separator", t.separator},
        {"@border", t.highContrast ? t.faint : mix(t.separator, fieldBorder(t.dark, t.highContrast), 0.3)},
        {"@hover", mix(t.panel, t.text, t.highContrast ? 0.18 : 0.05)},
        {"@tint", mix(t.panel, t.accent, t.dark ? 0.24 : 0.11)},
        {"@fieldLine", fieldBorder(t.dark, t.highContrast)},
        {"@field", t.dark ? t.window : mix(t.panel, t.window, 0.6)},
        {"@groove", t.track},
        {"@critical", t.critical},
        {"@errorFill", mix(t.panel, t.critical, t.dark ? 0.18 : 0.08)},
        {"@bannerFill", mix(t.panel, t.accent, t.dark ? 0.16 : 0.07)},
        {"@better", t.better},
        {"@worse", t.worse},
    };
}

QString styleSheet(const Theme& t)
{
    initPanelResources();
    QString text = QString::fromLatin1(sheet);
    for (const auto& [name, colour] : styleColours(t)) text.replace(name, hex(colour));
    const QList<std::pair<QString, QString>> values{
        {"@family", loadFonts()}, // named here too: platform themes give menus and buttons fonts of their own
        {"@close", t.dark ? u":/stagewright/icons/close_dark.svg"_s : u":/stagewright/icons/close_light.svg"_s},
        {"@check", t.dark ? u":/stagewright/icons/check_dark.svg"_s : u":/stagewright/icons/check_light.svg"_s},
        {"@arrow", t.dark ? u":/stagewright/icons/down_dark.svg"_s : u":/stagewright/icons/down_light.svg"_s},
    };
    for (const auto& [name, value] : values) text.replace(name, value);
    if (textScale() > 1) {
        static const QRegularExpression size(u"font-size: (\\d+)px"_s);
        QString scaled;
        qsizetype at = 0;
        for (auto found = size.globalMatch(text); found.hasNext();) {
            const auto match = found.next();
            scaled += text.mid(at, match.capturedStart() - at) +
                      u"font-size:%1px"_s.arg(textPixels(match.captured(1).toInt()));
            at = match.capturedEnd();
        }
        text = scaled + text.mid(at);
    }
    return text;
}

QLabel* makeLabel(const QString& text, const char* role, QWidget* parent, bool selectable)
{
    auto* label = new QLabel(text, parent);
    dressLabel(label, role, selectable);
    return label;
}

void dressLabel(QLabel* label, const char* role, bool selectable)
{
    label->setProperty("role", QString::fromLatin1(role));
    label->setTextFormat(Qt::PlainText);
    if (!selectable) return;
    label->setTextInteractionFlags(Qt::TextSelectableByMouse);
    leaveCopyToTable(label);
}

QLabel* makeFieldLabel(const QString& title, QWidget* field, const QString& tooltip, QWidget* parent)
{
    QLabel* label = makeLabel(title, "secondary", parent);
    label->setBuddy(field);
    label->setToolTip(tooltip);
    field->setToolTip(tooltip);
    field->setAccessibleName(title);
    field->setAccessibleDescription(tooltip);
    return label;
}

void setRole(QLabel* label, const char* role)
{
    const QString value = QString::fromLatin1(role);
    if (label->property("role").toString() == value) return;
    label->setProperty("role", value);
    label->style()->unpolish(label);
    label->style()->polish(label);
}

} // namespace stagewright
