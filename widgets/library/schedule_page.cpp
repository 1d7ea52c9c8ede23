// The page of the selected schedule: its fields, its figures, and the preview that is made off the GUI thread.
#include <algorithm>

#include <QComboBox>
#include <QDoubleSpinBox>
#include <QGridLayout>
#include <QLabel>
#include <QLineEdit>
#include <QListWidget>
#include <QPushButton>
#include <QScrollArea>
#include <QScrollBar>
#include <QSpinBox>

#include "widgets/library/schedule_browser.h"
#include "widgets/library/schedule_groups.h"
#include "widgets/literals.h"
#include "widgets/numbers.h"
#include "widgets/panel/panel_parts.h"
#include "widgets/panel/section_rows.h"
#include "widgets/sentence.h"
#include "widgets/style.h"
#include "widgets/timeline/legend.h"
#include "widgets/timeline/timeline_view.h"

namespace stagewright {

QString ScheduleBrowser::Field::value() const
{
    if (const auto* box = qobject_cast<const QComboBox*>(editor)) return box->currentText().trimmed();
    if (const auto* box = qobject_cast<const QSpinBox*>(editor)) return QString::number(box->value());
    if (const auto* line = qobject_cast<const QLineEdit*>(editor)) return line->text().trimmed();
    return {};
}

void ScheduleBrowser::showPage()
{
    const QListWidgetItem* item = m_list->currentItem();
    const auto info = item != nullptr ? findSchedule(item->data(Qt::UserRole).toString().toStdString())
                                      : Result<const ScheduleInfo*>(nullptr);
    m_info = info && item != nullptr ? *info : nullptr;
    if (m_info == nullptr) return;
    m_title->setText(words(m_info->title));
    m_summary->setText(words(m_info->summary));
    m_paper->setText(words(m_info->paper));
    m_constraints->setText(words(m_info->constraints));
    m_formulas->setText(words(m_info->formulas));
    m_formulas->setVisible(!m_info->formulas.empty());
    m_aliases->setText(m_info->aliases.empty() ? u"none"_s : words(m_info->aliases));
    m_chunks->setEnabled(m_info->fixedChunks <= 0);
    m_chunks->setSpecialValueText(m_info->fixedChunks > 0 ? u"always %1"_s.arg(m_info->fixedChunks)
                                                          : u"default: %1"_s.arg(m_info->defaultChunks));
    if (m_info->fixedChunks > 0) m_chunks->setValue(0);
    m_block->setVisible(m_info->name == "v-min" || m_info->name == "v-half" || m_info->name == "v-zb");
    fillParameters();
    m_page->verticalScrollBar()->setValue(0);
    m_pending = true;
    ask();
}

void ScheduleBrowser::fillParameters()
{
    m_fields.clear();
    while (QLayoutItem* item = m_parameters->takeAt(0)) {
        delete item->widget();
        delete item;
    }
    m_parameterBox->setVisible(!m_info->parameters.empty());
    if (m_info->parameters.empty()) return;
    m_parameters->addWidget(makeLabel(u"Parameters"_s, "title", m_parameterBox), 0, 0, 1, 3);
    const auto changed = [this] {
        m_pending = true;
        m_wait.start();
    };
    int row = 1;
    for (const ScheduleParameter& parameter : m_info->parameters) {
        const QString title = words(parameter.name), meaning = words(parameter.meaning),
                      fallback = words(parameter.fallback);
        const QStringList values = words(parameter.values).split(u'|');
        const bool number = values.contains("whole"_L1) || values.contains("real"_L1);
        QWidget* editor = nullptr;
        if (values == QStringList{u"whole"_s}) {
            auto* box = new QSpinBox(m_parameterBox);
            box->setRange(1, 1'000'000);
            box->setValue(fallback.toInt());
            connect(box, &QSpinBox::valueChanged, this, changed);
            editor = box;
        } else if (values == QStringList{u"real"_s}) {
            auto* line = new QLineEdit(fallback, m_parameterBox);
            connect(line, &QLineEdit::textChanged, this, changed);
            editor = line;
        } else { // alternatives, perhaps with a number as one of them
            auto* box = new QComboBox(m_parameterBox);
            for (const QString& value : values)
                if (value != "whole"_L1 && value != "real"_L1) box->addItem(value);
            box->setEditable(number);
            if (number) box->setInsertPolicy(QComboBox::NoInsert);
            box->setCurrentText(fallback);
            connect(box, &QComboBox::currentTextChanged, this, changed);
            editor = box;
        }
        editor->setObjectName(u"parameter-"_s + title);
        editor->setAccessibleName(title);
        editor->setToolTip(u"%1\nDefault: %2"_s.arg(meaning, fallback));
        editor->setMinimumWidth(96);
        auto* label = makeLabel(title, "secondary", m_parameterBox);
        label->setBuddy(editor);
        auto* words = makeLabel(meaning, "faint", m_parameterBox);
        words->setWordWrap(true);
        m_parameters->addWidget(label, row, 0, Qt::AlignTop);
        m_parameters->addWidget(editor, row, 1, Qt::AlignTop);
        m_parameters->addWidget(words, row++, 2);
        m_fields.push_back({&parameter, editor});
    }
    // Tab goes from the costs through the parameters to the buttons.
    QWidget* before = m_latency;
    for (const Field& field : m_fields) {
        setTabOrder(before, field.editor);
        before = field.editor;
    }
}

QString ScheduleBrowser::name() const
{
    if (m_info == nullptr) return {};
    QString text = words(m_info->name);
    for (const Field& field : m_fields) {
        const QString value = field.value();
        if (value != words(field.parameter->fallback)) text += u":%1=%2"_s.arg(words(field.parameter->name), value);
    }
    return text;
}

Shape ScheduleBrowser::shape() const
{
    return withCosts(Shape{m_ranks->value(), m_microbatches->value(), m_chunks->value()}, costs());
}

void ScheduleBrowser::setShape(const Shape& shape)
{
    m_ranks->setValue(shape.ranks);
    m_microbatches->setValue(shape.microbatches);
    m_chunks->setValue(shape.chunks);
}

CostModel::UnitCosts ScheduleBrowser::costs() const
{
    CostModel::UnitCosts out;
    out.forward = m_forward->value();
    out.inputGrad = m_input->value();
    out.weightGrad = m_weight->value();
    out.latency = m_latency->value();
    return out;
}

void ScheduleBrowser::ask()
{
    m_wait.stop();
    if (m_info == nullptr) return;
    m_pending = true;
    m_drawn->setText(u"Simulating…"_s);
    m_create->setEnabled(false);
    m_train->setEnabled(false);
    const PreviewRequest request{name().toStdString(), shape(), costs()};
    m_previewing.start(
        [request](const std::stop_token& stop) {
            Progress progress;
            progress.stop = stop;
            return std::make_shared<SchedulePreview>(previewOf(request, progress));
        },
        [this](const std::shared_ptr<SchedulePreview>& preview) { present(std::move(*preview)); });
}

void ScheduleBrowser::present(SchedulePreview preview)
{
    m_pending = false;
    m_preview = std::move(preview);
    const bool made = !m_preview.fault;
    QString text = made ? QString() : QString::fromStdString(m_preview.fault->message);
    if (!made && !m_preview.fault->remedy.empty()) text += u"; "_s + QString::fromStdString(m_preview.fault->remedy);
    m_fault->setText(sentence(text));
    m_nearest->setVisible(m_preview.nearest.has_value());
    if (const auto& nearest = m_preview.nearest) {
        QString shape = u"%1 × %2"_s.arg(nearest->ranks).arg(nearest->microbatches);
        if (nearest->chunks != m_chunks->value())
            shape += nearest->chunks == 0 ? u", default stages"_s : u", %1 stages per rank"_s.arg(nearest->chunks);
        m_nearest->setText(u"Use %1"_s.arg(shape));
    }
    m_create->setEnabled(made);
    m_train->setEnabled(made);
    m_view->setVisible(m_preview.panel != nullptr);
    m_legend->setVisible(m_preview.panel != nullptr);
    if (m_preview.panel) {
        const int ranks = static_cast<int>(m_preview.panel->ranks.size());
        const double height = ranks <= 4 ? 30 : ranks <= 8 ? 20 : ranks <= 16 ? 11 : 4;
        m_state->setShows({.communication = m_latency->value() > 0 && ranks <= 8});
        m_view->setRowSizes({.height = height});
        m_view->setPanels({m_preview.panel});
        m_view->setFixedHeight(std::min(320, m_view->sizeHint().height()));
        m_state->fitAll();
        m_legend->setPanels({m_preview.panel});
        m_drawn->setText(
            u"%1, simulated with the costs below; 1 unit is the time of one F at cost 1. Keys and mouse "
            "work as in the timeline."_s.arg(countText(static_cast<qint64>(m_preview.ops), u"1 op"_s, u"%L1 ops"_s)));
    } else {
        m_view->setPanels({});
        m_drawn->setText(made ? u"Too many ops for a preview (%L1); press Create to see them."_s.arg(m_preview.ops)
                              : QString());
    }
    m_drawn->setVisible(!m_drawn->text().isEmpty());
    fillFigures();
}

void ScheduleBrowser::fillFigures()
{
    m_figures->clear();
    m_figures->setVisible(!m_preview.fault);
    if (m_preview.fault) return;
    const Units units{rankShare, activationShare};
    m_figures->addRow(u"Stages × microbatches"_s, u"%1 × %2"_s.arg(m_preview.stages).arg(m_microbatches->value()));
    m_figures->addRow(u"Step time"_s, durationText(m_preview.makespan, units), figureMeaning("makespan"));
    if (m_preview.closed.makespan >= 0) {
        const double off = static_cast<double>(m_preview.makespan) / rankShare - m_preview.closed.makespan;
        m_figures->addRow(u"by the formula"_s, unitsText(m_preview.closed.makespan),
                          u"Closed form at these costs; the simulation differs by %1."_s.arg(unitsText(off)),
                          std::abs(off) < 0.005 ? document::Tone::Good : document::Tone::Plain);
    }
    m_figures->addRow(u"Span of a rank"_s, durationText(m_preview.span, units),
                      u"Longest time from the first start to the last end on any rank."_s);
    m_figures->addRow(u"Bubble ratio"_s, percentText(m_preview.bubbleFraction), figureMeaning("bubble_fraction"));
    m_figures->addRow(
        u"Bubble rate by span"_s, percentText(m_preview.bubbleRateSpan),
        u"1 − ideal ÷ span, as in zero-bubble papers; ideal is the busy time of the rank with the longest span."_s);
    const auto peaks = [&](const auto& list, auto text) {
        QStringList parts;
        if (list.size() <= 8) {
            for (const auto& peak : list) parts << text(peak);
            return parts.join("  "_L1);
        }
        const auto [low, high] = std::minmax_element(list.begin(), list.end());
        return u"%1 … %2"_s.arg(text(*low), text(*high));
    };
    const auto share = [](double value) { return shortText(value); };
    m_figures->addRow(u"Peak by rank, activations"_s,
                      peaks(m_preview.peaks, [&](Bytes b) { return share(static_cast<double>(b) / activationShare); }),
                      figureMeaning("peak_activation"));
    if (!m_preview.closed.peakActivation.empty()) {
        double off = 0;
        for (std::size_t r = 0; r < std::min(m_preview.peaks.size(), m_preview.closed.peakActivation.size()); ++r)
            off = std::max(off, std::abs(static_cast<double>(m_preview.peaks[r]) / activationShare -
                                         m_preview.closed.peakActivation[r]));
        m_figures->addRow(u"by the formula"_s, peaks(m_preview.closed.peakActivation, share),
                          u"Closed form; the simulation differs by at most %1."_s.arg(fixed(off, 2)),
                          off < 0.005 ? document::Tone::Good : document::Tone::Plain);
    }
    if (m_preview.weights != WeightRule::Synchronous)
        m_figures->addText(
            u"Training results differ: weights are %1. A recording measures the deviation from synchronous training."_s
                .arg(words(toText(m_preview.weights)).replace(u'_', u' ')));
}

QString ScheduleBrowser::pageText() const
{
    QStringList lines;
    for (const QLabel* label : {m_title, m_summary, m_constraints, m_formulas, m_paper, m_aliases, m_fault, m_drawn})
        if (!label->text().isEmpty()) lines << label->text();
    lines << m_figures->plainText();
    for (const Field& field : m_fields) lines << words(field.parameter->name) + u'=' + field.value();
    return lines.join(u'\n');
}

} // namespace stagewright
