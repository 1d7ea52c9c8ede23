#include "widgets/export/export_dialog.h"

#include <algorithm>

#include <QCheckBox>
#include <QComboBox>
#include <QDialogButtonBox>
#include <QDoubleSpinBox>
#include <QFormLayout>
#include <QGuiApplication>
#include <QHBoxLayout>
#include <QPushButton>
#include <QScreen>
#include <QSettings>
#include <QSpinBox>
#include <QVBoxLayout>

#include "widgets/literals.h"
#include "widgets/numbers.h"
#include "widgets/sentence.h"
#include "widgets/style.h"

namespace stagewright {
namespace {

using Look = PictureStyle::Look;

struct Preset {
    const char* text;
    Look look;
    QSize pixels; // height 0: as needed; empty: as on screen
    double millimetres;
};
constexpr Preset presets[] = {
    {"As on screen", Look::Screen, {}, 0},
    {"Slide, 16:9", Look::Screen, {1280, 720}, 0},
    {"Slide, 4:3", Look::Screen, {1024, 768}, 0},
    {"Web page, 1200 wide", Look::Screen, {1200, 0}, 0},
    {"One column, 84 mm", Look::Paper, {}, oneColumnMm},
    {"Two columns, 178 mm", Look::Paper, {}, twoColumnsMm},
};
constexpr int custom = -1;

} // namespace

ExportDialog::ExportDialog(PictureContent content, QSize onScreen, QWidget* parent)
    : QDialog(parent), m_content(std::move(content)), m_onScreen(onScreen)
{
    setObjectName(u"exportPicture"_s);
    setWindowTitle(u"Export the picture"_s);
    m_later.setSingleShot(true);
    m_later.setInterval(60);
    connect(&m_later, &QTimer::timeout, this, &ExportDialog::draw);
    build();
    restore();
    resize(980, 600);
}

void ExportDialog::build()
{
    auto* columns = new QHBoxLayout(this);
    columns->setContentsMargins(18, 18, 18, 16);
    columns->setSpacing(18);

    m_view = new QLabel(this);
    m_view->setObjectName(u"preview"_s);
    m_view->setAccessibleName(u"Preview"_s);
    m_view->setAlignment(Qt::AlignCenter);
    m_view->setMinimumSize(380, 260);
    m_view->setSizePolicy(QSizePolicy::Expanding, QSizePolicy::Expanding);
    m_size = makeLabel({}, "secondary", this);
    m_size->setAccessibleName(u"Size"_s);
    m_note = makeLabel({}, "secondary", this);
    m_note->setWordWrap(true);
    auto* left = new QVBoxLayout;
    left->setSpacing(8);
    left->addWidget(m_view, 1);
    left->addWidget(m_size);
    left->addWidget(m_note);
    columns->addLayout(left, 1);

    auto* right = new QVBoxLayout;
    right->setSpacing(12);
    m_form = new QFormLayout;
    m_form->setHorizontalSpacing(12);
    m_form->setVerticalSpacing(8);
    m_form->setFieldGrowthPolicy(QFormLayout::ExpandingFieldsGrow);
    const auto field = [&](const QString& label, auto* widget, const QString& tip) {
        widget->setAccessibleName(label);
        widget->setToolTip(tip);
        widget->setMinimumWidth(170);
        m_form->addRow(label, widget);
        return widget;
    };
    m_kind =
        field(u"Format"_s, new QComboBox(this), u"SVG and PDF stay sharp at any size; PNG is an image of pixels."_s);
    m_kind->addItem(u"SVG"_s, static_cast<int>(PictureKind::Svg));
    m_kind->addItem(u"PDF"_s, static_cast<int>(PictureKind::Pdf));
    m_kind->addItem(u"PNG"_s, static_cast<int>(PictureKind::Png));
    m_look = field(u"Style"_s, new QComboBox(this),
                   u"Screen: the theme's colours and what is selected. Paper: white, dark lines, no selection, sizes "
                   "in millimetres and points."_s);
    m_look->addItem(u"Screen"_s, static_cast<int>(Look::Screen));
    m_look->addItem(u"Paper"_s, static_cast<int>(Look::Paper));
    m_preset = field(u"Size"_s, new QComboBox(this), u"A starting size"_s);
    m_width = field(u"Width"_s, new QSpinBox(this), u"In logical pixels, as in the window"_s);
    m_width->setRange(320, 16000);
    m_width->setSuffix(u" px"_s);
    m_height = field(u"Height"_s, new QSpinBox(this), u"In logical pixels; automatic: fits the content"_s);
    m_height->setRange(0, 16000);
    m_height->setSuffix(u" px"_s);
    m_height->setSpecialValueText(u"automatic"_s);
    m_millimetres = field(u"Width"_s, new QDoubleSpinBox(this), u"On paper. The height follows from the content."_s);
    m_millimetres->setRange(40, 1200);
    m_millimetres->setDecimals(1);
    m_millimetres->setSuffix(u" mm"_s);
    m_points = field(u"Text"_s, new QDoubleSpinBox(this),
                     u"Text size on paper; everything else follows. Journals require 6 to 8 pt."_s);
    m_points->setRange(4, 16);
    m_points->setDecimals(1);
    m_points->setSingleStep(0.5);
    m_points->setSuffix(u" pt"_s);
    m_scale = field(u"Pixels"_s, new QComboBox(this), u"Image pixels per window pixel"_s);
    for (const int scale : {1, 2, 3, 4}) m_scale->addItem(u"%1×"_s.arg(scale), scale);
    m_dpi = field(u"Pixels"_s, new QComboBox(this), u"Image resolution in dots per inch"_s);
    for (const int dpi : {300, 600, 1200}) m_dpi->addItem(u"%1 dpi"_s.arg(dpi), dpi);
    right->addLayout(m_form);

    const auto check = [&](const QString& text, const QString& tip) {
        auto* box = new QCheckBox(text, this);
        box->setToolTip(tip);
        right->addWidget(box);
        connect(box, &QCheckBox::toggled, this, &ExportDialog::changed);
        return box;
    };
    for (const PicturePart& part : m_content.parts) {
        if (part.role != PicturePart::Role::View) continue;
        QCheckBox* box = check(part.name, u"Include in the picture"_s);
        box->setChecked(true);
        m_parts.push_back(box);
    }
    m_caption = check(u"Caption"_s, u"Schedule, costs, clock and source, above the picture"_s);
    m_legend = check(u"Legend"_s, u"What the colours mean, below the picture"_s);
    m_notes = check(u"Notes and explanations"_s, u"Notes and the marks of an explanation of idle time"_s);
    m_hatch =
        check(u"Hatching for grey print"_s, u"Backward, weight gradient and communication also differ by hatch"_s);
    right->addStretch(1);

    auto* buttons = new QDialogButtonBox(this);
    m_save = new QPushButton(u"&Save…"_s, this);
    m_save->setObjectName(u"primary"_s); // before the box has it, which fixes its style
    buttons->addButton(m_save, QDialogButtonBox::AcceptRole);
    m_save->setDefault(true);
    QPushButton* copy = buttons->addButton(u"&Copy image"_s, QDialogButtonBox::ActionRole);
    copy->setToolTip(u"Copies the picture to the clipboard as an image"_s);
    buttons->addButton(QDialogButtonBox::Cancel);
    right->addWidget(buttons);
    columns->addLayout(right);

    connect(m_save, &QPushButton::clicked, this, [this] {
        remember();
        emit saveAsked();
    });
    connect(copy, &QPushButton::clicked, this, [this] {
        remember();
        emit copyAsked();
    });
    connect(buttons, &QDialogButtonBox::rejected, this, &QDialog::reject);
    connect(m_kind, &QComboBox::currentIndexChanged, this, &ExportDialog::changed);
    connect(m_look, &QComboBox::currentIndexChanged, this, [this] {
        refill();
        m_preset->setCurrentIndex(0);
        emit m_preset->activated(m_preset->currentIndex());
        changed();
    });
    connect(m_preset, &QComboBox::activated, this, [this] {
        const int index = m_preset->currentData().toInt();
        if (index == custom) return;
        const Preset& preset = presets[index];
        m_quiet = true;
        const QSize pixels = preset.pixels.width() > 0 ? preset.pixels : m_onScreen;
        m_width->setValue(pixels.width());
        m_height->setValue(pixels.height());
        if (preset.millimetres > 0) m_millimetres->setValue(preset.millimetres);
        m_quiet = false;
        changed();
    });
    for (QSpinBox* box : {m_width, m_height}) connect(box, &QSpinBox::valueChanged, this, &ExportDialog::changed);
    for (QDoubleSpinBox* box : {m_millimetres, m_points})
        connect(box, &QDoubleSpinBox::valueChanged, this, &ExportDialog::changed);
    for (QComboBox* box : {m_scale, m_dpi}) connect(box, &QComboBox::currentIndexChanged, this, &ExportDialog::changed);
}

// The presets of the chosen style.
void ExportDialog::refill()
{
    const auto look = static_cast<Look>(m_look->currentData().toInt());
    const QSignalBlocker blocker(m_preset);
    m_preset->clear();
    for (int i = 0; i < static_cast<int>(std::size(presets)); ++i)
        if (presets[i].look == look) m_preset->addItem(QString::fromUtf8(presets[i].text), i);
    m_preset->addItem(u"Other"_s, custom);
}

PictureKind ExportDialog::kind() const { return static_cast<PictureKind>(m_kind->currentData().toInt()); }

void ExportDialog::setKind(PictureKind kind) { m_kind->setCurrentIndex(m_kind->findData(static_cast<int>(kind))); }

PictureStyle ExportDialog::style() const
{
    PictureStyle style;
    style.look = static_cast<Look>(m_look->currentData().toInt());
    style.pixels = {m_width->value(), m_height->value()};
    style.scale = m_scale->currentData().toInt();
    style.widthMm = m_millimetres->value();
    style.textPoints = m_points->value();
    style.dpi = m_dpi->currentData().toInt();
    style.hatched = m_hatch->isChecked();
    style.caption = m_caption->isChecked();
    style.legend = m_legend->isChecked();
    style.notes = m_notes->isChecked();
    for (const QCheckBox* part : m_parts)
        if (!part->isChecked()) style.without << part->text();
    return style;
}

void ExportDialog::setStyle(const PictureStyle& style)
{
    m_quiet = true;
    m_look->setCurrentIndex(m_look->findData(static_cast<int>(style.look)));
    refill();
    m_width->setValue(style.pixels.width());
    m_height->setValue(style.pixels.height());
    m_scale->setCurrentIndex(std::max(0, m_scale->findData(static_cast<int>(style.scale))));
    m_millimetres->setValue(style.widthMm);
    m_points->setValue(style.textPoints);
    m_dpi->setCurrentIndex(std::max(0, m_dpi->findData(style.dpi)));
    m_hatch->setChecked(style.hatched);
    m_caption->setChecked(style.caption);
    m_legend->setChecked(style.legend);
    m_notes->setChecked(style.notes);
    for (QCheckBox* part : m_parts) part->setChecked(!style.without.contains(part->text()));
    m_quiet = false;
    changed();
}

void ExportDialog::changed()
{
    if (m_quiet) return;
    const PictureStyle now = style();
    const bool paper = now.look == Look::Paper, png = kind() == PictureKind::Png;
    m_form->setRowVisible(m_width, !paper);
    m_form->setRowVisible(m_height, !paper);
    m_form->setRowVisible(m_millimetres, paper);
    m_form->setRowVisible(m_points, paper);
    m_form->setRowVisible(m_scale, png && !paper);
    m_form->setRowVisible(m_dpi, png && paper);
    m_hatch->setVisible(paper);
    int chosen = m_preset->count() - 1;
    for (int i = m_preset->count() - 1; i >= 0; --i) {
        const int index = m_preset->itemData(i).toInt();
        if (index == custom) continue;
        const Preset& preset = presets[index];
        const QSize pixels = preset.pixels.width() > 0 ? preset.pixels : m_onScreen;
        if (paper ? now.widthMm == preset.millimetres : now.pixels == pixels) chosen = i;
    }
    m_preset->setCurrentIndex(chosen);
    m_save->setEnabled(now.without.size() < static_cast<qsizetype>(m_parts.size()));
    m_later.start();
}

void ExportDialog::showFault(const Error& error)
{
    QString text = QString::fromStdString(error.message);
    if (!error.remedy.empty()) text += u"; "_s + QString::fromStdString(error.remedy);
    m_note->setText(sentence(text));
    m_note->setVisible(true);
}

void ExportDialog::draw()
{
    const PictureStyle now = style();
    const QSizeF size = pictureSize(m_content, now);
    const double ratio = devicePixelRatioF();
    const QSizeF room = QSizeF(m_view->size()) - QSizeF(4, 4);
    const double fit = std::min({1.0, room.width() / size.width(), room.height() / size.height()});
    m_image =
        pictureImage(m_content, now, std::max(1.0, fit * ratio))
            .scaled((size * fit * ratio).toSize().expandedTo({1, 1}), Qt::IgnoreAspectRatio, Qt::SmoothTransformation);
    m_image.setDevicePixelRatio(ratio);
    {
        QPainter painter(&m_image); // modal to the dialog
        painter.setPen(palette().color(QPalette::Mid));
        painter.drawRect(QRectF(QPointF(), QSizeF(m_image.size()) / ratio).adjusted(0.5, 0.5, -0.5, -0.5));
    }
    m_view->setPixmap(QPixmap::fromImage(m_image));
    m_view->setAccessibleDescription(m_content.title);
    const QSizeF mm = pictureMillimetres(m_content, now);
    if (now.look == Look::Paper)
        m_size->setText(u"%1 × %2 mm"_s.arg(fixed(mm.width(), 1), fixed(mm.height(), 1)));
    else if (kind() == PictureKind::Png)
        m_size->setText(
            u"%1 × %2 pixels"_s.arg(qRound(size.width() * now.scale)).arg(qRound(size.height() * now.scale)));
    else
        m_size->setText(u"%1 × %2 logical pixels"_s.arg(qRound(size.width())).arg(qRound(size.height())));
    m_note->setText(embedsImage(m_content, now, kind())
                        ? u"More than %L1 slices are in view, so they are embedded as an image."_s.arg(mostVectorSlices)
                        : QString());
    m_note->setVisible(!m_note->text().isEmpty());
}

void ExportDialog::resizeEvent(QResizeEvent* event)
{
    QDialog::resizeEvent(event);
    m_later.start();
}

void ExportDialog::showEvent(QShowEvent* event)
{
    QDialog::showEvent(event);
    draw();
}

void ExportDialog::remember() const
{
    const PictureStyle now = style();
    QSettings settings;
    settings.beginGroup(u"export"_s);
    settings.setValue(u"kind"_s, suffixOf(kind()));
    settings.setValue(u"look"_s, now.look == Look::Paper ? u"paper"_s : u"screen"_s);
    settings.setValue(u"onScreen"_s, now.pixels == m_onScreen);
    settings.setValue(u"pixels"_s, now.pixels);
    settings.setValue(u"scale"_s, now.scale);
    settings.setValue(u"millimetres"_s, now.widthMm);
    settings.setValue(u"points"_s, now.textPoints);
    settings.setValue(u"dpi"_s, now.dpi);
    settings.setValue(u"hatched"_s, now.hatched);
    settings.setValue(u"caption"_s, now.caption);
    settings.setValue(u"legend"_s, now.legend);
    settings.setValue(u"notes"_s, now.notes);
}

void ExportDialog::restore()
{
    PictureStyle style;
    QSettings settings;
    settings.beginGroup(u"export"_s);
    setKind(pictureKind(settings.value(u"kind"_s).toString()).value_or(PictureKind::Svg));
    style.look = settings.value(u"look"_s).toString() == "paper"_L1 ? Look::Paper : Look::Screen;
    style.pixels =
        settings.value(u"onScreen"_s, true).toBool() ? m_onScreen : settings.value(u"pixels"_s, m_onScreen).toSize();
    style.scale = settings.value(u"scale"_s, style.scale).toDouble();
    style.widthMm = settings.value(u"millimetres"_s, style.widthMm).toDouble();
    style.textPoints = settings.value(u"points"_s, style.textPoints).toDouble();
    style.dpi = settings.value(u"dpi"_s, style.dpi).toInt();
    style.hatched = settings.value(u"hatched"_s, style.hatched).toBool();
    style.caption = settings.value(u"caption"_s, style.caption).toBool();
    style.legend = settings.value(u"legend"_s, style.legend).toBool();
    style.notes = settings.value(u"notes"_s, style.notes).toBool();
    setStyle(style);
}

} // namespace stagewright
