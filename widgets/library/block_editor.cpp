#include "widgets/library/block_editor.h"

#include <algorithm>

#include <QComboBox>
#include <QGridLayout>
#include <QLabel>
#include <QPlainTextEdit>
#include <QPushButton>
#include <QScrollArea>
#include <QSpinBox>
#include <QVBoxLayout>

#include "schedules/heuristic/block_schedule.h"
#include "schedules/timeline/timeline_of.h"
#include "widgets/literals.h"
#include "widgets/panel/panel_parts.h"
#include "widgets/panel/section_rows.h"
#include "widgets/sentence.h"
#include "widgets/style.h"
#include "widgets/timeline/timeline_view.h"

namespace stagewright {
namespace {

Block presetBlock(const QString& name, int devices)
{
    if (name == "v-min"_L1) return vMinBlock(devices);
    if (name == "v-zb"_L1) return vZbBlock(devices);
    if (name == "1f1b"_L1) return oneForwardOneBackwardBlock(devices);
    if (name == "v-half:turn=paper"_L1) return vHalfBlock(devices, SpareSlot::FirstTurn);
    return vHalfBlock(devices);
}

struct Made {
    std::shared_ptr<const Schedule> schedule;
    std::shared_ptr<const TimelinePanel> panel;
    QString fault;
};

Made madeOf(const Block& block, int microbatches)
{
    Made out;
    auto schedule = scheduleOf(block, microbatches);
    if (!schedule) {
        out.fault = QString::fromStdString(schedule.error().message);
        return out;
    }
    auto timeline = simulatedTimeline(*schedule, CostModel::uniform(*schedule));
    if (!timeline) {
        out.fault = QString::fromStdString(timeline.error().message);
        return out;
    }
    out.schedule = std::make_shared<const Schedule>(std::move(*schedule));
    out.panel = makePanel(*timeline);
    return out;
}

} // namespace

BlockEditor::BlockEditor(const Theme& theme, QWidget* parent) : QDialog(parent), m_theme(theme)
{
    setObjectName(u"blockEditor"_s);
    setWindowTitle(u"Building block"_s);
    auto* outer = new QVBoxLayout(this);
    outer->setContentsMargins(20, 18, 20, 16);
    outer->setSpacing(10);
    auto* head = new QHBoxLayout;
    head->setSpacing(8);
    const auto field = [&](const QString& title, QWidget* widget, const QString& tooltip) {
        auto* label = makeLabel(title, "secondary", this);
        label->setBuddy(widget);
        widget->setAccessibleName(title);
        widget->setToolTip(tooltip);
        head->addWidget(label);
        head->addWidget(widget);
        head->addSpacing(8);
    };
    const auto spin = [&](const char* name, int low, int high, int value) {
        auto* box = new QSpinBox(this);
        box->setObjectName(QString::fromLatin1(name));
        box->setRange(low, high);
        box->setValue(value);
        return box;
    };
    m_preset = new QComboBox(this);
    m_preset->setObjectName(u"preset"_s);
    for (const auto& [title, key] : {std::pair{u"V-Min"_s, "v-min"},
                                     {u"V-Half"_s, "v-half"},
                                     {u"V-Half, as in the paper"_s, "v-half:turn=paper"},
                                     {u"V-ZB"_s, "v-zb"},
                                     {u"1F1B"_s, "1f1b"}})
        m_preset->addItem(title, QString::fromLatin1(key));
    m_devices = spin("devices", 1, 32, 4);
    m_interval = spin("interval", 1, 96, 6);
    m_microbatches = spin("microbatches", 1, 1024, 8);
    field(u"Start from"_s, m_preset, u"A block from the papers; choosing one discards your changes."_s);
    field(u"Devices"_s, m_devices, u"Ranks; changing the number starts again from the paper's block."_s);
    field(u"Interval"_s, m_interval,
          u"Slots from one microbatch to the next; 3 per chunk keep a device busy all the time."_s);
    field(u"Microbatches"_s, m_microbatches, u"Number of repetitions of the block."_s);
    head->addStretch(1);
    outer->addLayout(head);

    auto* scroll = new QScrollArea(this);
    scroll->setWidgetResizable(true);
    scroll->setFrameShape(QFrame::NoFrame);
    scroll->setFocusPolicy(Qt::NoFocus);
    m_view = new BlockView(scroll);
    m_view->setTheme(theme);
    scroll->setWidget(m_view);
    scroll->setMinimumHeight(200);
    outer->addWidget(scroll, 3);
    m_fault = makeLabel({}, "worse", this);
    m_fault->setWordWrap(true);
    outer->addWidget(m_fault);

    m_state = new ViewState(this);
    m_state->setShows({.communication = false});
    m_timeline = new TimelineView(m_state, this);
    m_timeline->setObjectName(u"blockTimeline"_s);
    m_timeline->setTitle(u"Schedule"_s);
    m_timeline->setTheme(theme);
    outer->addWidget(m_timeline, 3);

    auto* lower = new QHBoxLayout;
    lower->setSpacing(24);
    m_figures = new PanelSection(u"Block figures"_s, this);
    m_figures->setRuled(false);
    lower->addWidget(m_figures, 3);
    auto* texts = new QVBoxLayout;
    texts->addWidget(makeLabel(u"As text"_s, "title", this));
    m_text = new QPlainTextEdit(this);
    m_text->setObjectName(u"blockText"_s);
    m_text->setAccessibleName(u"The block as text"_s);
    m_text->setTabChangesFocus(true);
    m_text->setLineWrapMode(QPlainTextEdit::NoWrap);
    m_text->setStyleSheet(u"font-family: \"DejaVu Sans Mono\", monospace; font-size: 11px;"_s);
    m_text->setFixedHeight(120);
    m_text->setToolTip(u"Device, then each pass with its slot; editable."_s);
    texts->addWidget(m_text);
    texts->addStretch(1);
    lower->addLayout(texts, 4);
    outer->addLayout(lower);

    auto* bottom = new QHBoxLayout;
    bottom->addStretch(1);
    auto* cancel = new QPushButton(u"Cancel"_s, this);
    cancel->setAutoDefault(false);
    m_create = new QPushButton(u"Create schedule"_s, this);
    m_create->setObjectName(u"primary"_s);
    m_create->setDefault(true);
    bottom->addWidget(cancel);
    bottom->addWidget(m_create);
    outer->addLayout(bottom);

    m_wait.setSingleShot(true);
    m_wait.setInterval(60);
    connect(&m_wait, &QTimer::timeout, this, &BlockEditor::make);
    connect(m_preset, &QComboBox::currentIndexChanged, this, &BlockEditor::presetChosen);
    connect(m_devices, &QSpinBox::valueChanged, this, &BlockEditor::presetChosen);
    connect(m_interval, &QSpinBox::valueChanged, this, [this](int interval) {
        if (m_filling) return;
        m_block.interval = interval;
        m_block.name = "edited";
        changed(false);
    });
    connect(m_microbatches, &QSpinBox::valueChanged, this, [this] {
        if (!m_filling) changed(false);
    });
    connect(m_view, &BlockView::edited, this, [this](const Block& block) {
        m_block = block;
        m_block.name = "edited";
        changed(false);
    });
    connect(m_text, &QPlainTextEdit::textChanged, this, [this] {
        if (m_filling) return;
        auto block = parseBlock(m_text->toPlainText().toStdString());
        if (!block) {
            m_valid = false;
            m_create->setEnabled(false);
            m_fault->setText(QString::fromStdString(block.error().message));
            return;
        }
        m_block = *block;
        changed(true);
    });
    connect(cancel, &QPushButton::clicked, this, &QDialog::reject);
    connect(m_create, &QPushButton::clicked, this, [this] {
        if (!m_schedule) return;
        emit createAsked(m_schedule);
        accept();
    });
    choose(u"v-half"_s, 4, 8);
    // it covers the window
    const QSize most = parentWidget() != nullptr ? parentWidget()->window()->size() - QSize(40, 20) : QSize(1120, 860);
    resize(QSize(1120, 860).boundedTo(most));
    m_view->setFocus();
}

void BlockEditor::choose(const QString& preset, int devices, int microbatches)
{
    m_filling = true;
    m_preset->setCurrentIndex(std::max(0, m_preset->findData(preset)));
    m_devices->setValue(devices);
    m_microbatches->setValue(microbatches);
    m_filling = false;
    presetChosen();
}

void BlockEditor::presetChosen()
{
    if (!m_filling) setBlock(presetBlock(m_preset->currentData().toString(), m_devices->value()));
}

void BlockEditor::setBlock(const Block& block)
{
    m_block = block;
    changed(false);
}

void BlockEditor::changed(bool fromText)
{
    m_filling = true;
    m_interval->setValue(m_block.interval);
    m_devices->setValue(static_cast<int>(m_block.devices.size()));
    if (!fromText) m_text->setPlainText(QString::fromStdString(toText(m_block)));
    m_filling = false;
    m_view->setBlock(m_block);
    const auto check = checkBlock(m_block);
    m_valid = check.has_value();
    QString text = m_valid ? QString()
                           : QString::fromStdString(check.error().message +
                                                    (check.error().remedy.empty() ? "" : "; " + check.error().remedy));
    m_fault->setText(sentence(text));
    m_view->setFault(!m_valid);
    m_create->setEnabled(m_valid && m_schedule);
    m_making.drop();
    m_pending = m_valid;
    if (m_valid) m_wait.start();
    fillFigures();
}

void BlockEditor::make()
{
    const int microbatches = m_microbatches->value();
    m_making.start([block = m_block, microbatches] { return madeOf(block, microbatches); },
                   [this](const Made& made) {
                       m_pending = false;
                       m_schedule = made.schedule;
                       m_panel = made.panel;
                       if (!made.fault.isEmpty()) m_fault->setText(made.fault);
                       m_create->setEnabled(m_valid && m_schedule);
                       if (m_panel) {
                           const int ranks = static_cast<int>(m_panel->ranks.size());
                           m_timeline->setRowSizes({.height = ranks <= 4 ? 30.0 : ranks <= 8 ? 18.0 : 9.0});
                           m_timeline->setPanels({m_panel});
                           m_state->fitAll();
                       }
                       fillFigures();
                   });
}

void BlockEditor::fillFigures()
{
    m_figures->clear();
    m_figures->addRow(u"Valid"_s, m_valid ? u"yes"_s : u"no"_s,
                      u"Every pass has its own slot modulo the interval and follows its inputs."_s,
                      m_valid ? document::Tone::Good : document::Tone::Bad);
    if (!m_valid) return;
    const BlockFigures figures = figuresOf(m_block);
    const auto list = [](const auto& values, auto text) {
        QStringList parts;
        for (const auto& value : values) parts << text(value);
        return parts.join("  "_L1);
    };
    const int chunks = m_block.chunks;
    m_figures->addRow(u"Lifespans by device, slots"_s,
                      list(figures.lifespan,
                           [chunks](const auto& span) {
                               return chunks == 1 ? QString::number(span[0]) : u"%1+%2"_s.arg(span[0]).arg(span[1]);
                           }),
                      u"From F's start to W's end, by chunk: how long an activation is held."_s);
    m_figures->addRow(u"Peak bound by device, chunks"_s,
                      list(figures.peakBound, [](int peak) { return QString::number(peak); }),
                      u"Sum over chunks of lifespan ÷ interval, rounded up: the activations held at the same time "
                      "while the block repeats."_s);
    if (!m_panel || m_pending) return;
    m_figures->addRow(u"Step time"_s, durationText(m_panel->duration, m_panel->units), figureMeaning("makespan"));
    m_figures->addRow(u"Bubble ratio"_s, percentText(m_panel->bubbleFraction), figureMeaning("bubble_fraction"));
    m_figures->addRow(u"Peak of the schedule"_s, bytesText(m_panel->peak, m_panel->units),
                      figureMeaning("peak_activation"));
}

QString BlockEditor::faultText() const { return m_fault->text(); }
QString BlockEditor::figuresText() const { return m_figures->plainText(); }

} // namespace stagewright
