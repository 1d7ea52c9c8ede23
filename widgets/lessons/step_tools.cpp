#include "widgets/lessons/step_tools.h"

#include <algorithm>

#include <QCheckBox>
#include <QComboBox>
#include <QDoubleSpinBox>
#include <QEvent>
#include <QGridLayout>
#include <QHBoxLayout>
#include <QLabel>
#include <QLineEdit>
#include <QPushButton>
#include <QSlider>
#include <QSpinBox>
#include <QVBoxLayout>

#include "schedules/model/kinds.h"
#include "traces/lessons/reports.h"
#include "widgets/lessons/page_reading.h"
#include "widgets/literals.h"
#include "widgets/runs/runs_model.h"
#include "widgets/style.h"

namespace stagewright {
namespace {

QString numberText(double value) { return QString::number(value, 'g', 6); }

// Turning the wheel scrolls the page: it never changes a value under the pointer.
class WheelPasses : public QObject {
public:
    using QObject::QObject;
    bool eventFilter(QObject*, QEvent* event) override
    {
        if (event->type() != QEvent::Wheel) return false;
        event->ignore();
        return true;
    }
};

} // namespace

StepTools::StepTools(QWidget* parent) : QWidget(parent)
{
    m_layout = new QVBoxLayout(this);
    m_layout->setContentsMargins(0, 0, 0, 0);
    m_layout->setSpacing(8);
    m_watched = makeLabel({}, "value", this, true);
    m_watched->setTextFormat(Qt::RichText);
    m_watched->setWordWrap(true);
    m_watched->hide();
    m_layout->addWidget(m_watched);
    m_title = makeLabel(u"Tools"_s, "title", this);
    m_layout->addWidget(m_title);
    m_wheel = new WheelPasses(this);
    m_words = new QLineEdit(this);
    m_words->setObjectName(u"editInWords"_s);
    m_words->setAccessibleName(u"Typed edit"_s);
    m_words->setToolTip(u"move 3B0 after 3F0 · swap 1F0 1F1 · rank 3: 3F0 3B0 3F1 … · warmup 3,2,1,0 · split · lag "
                        "0,1,2,3 · place 1F1 3 · set comm=0.5\n"
                        "Press Enter to apply. Only the tools that this step allows work."_s);
    connect(m_words, &QLineEdit::returnPressed, this, [this] {
        if (!m_words->text().trimmed().isEmpty()) emit editAsked(m_words->text().trimmed());
    });
    m_layout->addWidget(m_words);
    m_refusal = makeLabel({}, "worse", this, true);
    m_refusal->setWordWrap(true);
    m_refusal->setAccessibleName(u"Why it is not possible"_s);
    m_refusal->hide();
    m_layout->addWidget(m_refusal);
}

void StepTools::setRefusal(const QString& why)
{
    m_refusal->setText(why);
    m_refusal->setVisible(!why.isEmpty());
    if (why.isEmpty()) m_words->clear();
}

void StepTools::clear()
{
    m_fill.clear();
    delete m_form;
    m_form = new QWidget(this);
    m_grid = new QGridLayout(m_form);
    m_grid->setContentsMargins(0, 0, 0, 0);
    m_grid->setHorizontalSpacing(8);
    m_grid->setVerticalSpacing(6);
    m_grid->setColumnStretch(1, 1);
    m_layout->insertWidget(2, m_form);
}

void StepTools::addRow(const QString& label, QWidget* field, const QString& tip)
{
    const int row = m_grid->rowCount();
    auto* name = makeLabel(label, "secondary", m_form);
    name->setToolTip(tip);
    field->setToolTip(tip);
    if (field->accessibleName().isEmpty()) field->setAccessibleName(label);
    m_grid->addWidget(name, row, 0);
    m_grid->addWidget(field, row, 1);
    field->installEventFilter(m_wheel);
    for (QWidget* inner : field->findChildren<QWidget*>()) inner->installEventFilter(m_wheel);
}

void StepTools::addRankBoxes(const RankBoxes& words, const QString& command, int ranks,
                             std::function<std::vector<int>(const lessons::Canvas&)> valuesOf)
{
    auto* row = new QWidget(m_form);
    auto* line = new QHBoxLayout(row);
    line->setContentsMargins(0, 0, 0, 0);
    line->setSpacing(4);
    auto boxes = std::make_shared<std::vector<QSpinBox*>>();
    for (int rank = 0; rank < ranks && rank < 8; ++rank) {
        auto* box = new QSpinBox(row);
        box->setRange(0, 64);
        box->setFixedWidth(52);
        box->setKeyboardTracking(false);
        box->setAccessibleName(words.name.arg(rank));
        boxes->push_back(box);
        line->addWidget(box);
        connect(box, &QSpinBox::valueChanged, this, [this, boxes, command] {
            if (m_filling) return;
            QStringList values;
            for (const QSpinBox* one : *boxes) values << QString::number(one->value());
            emit editAsked(command + values.join(u','));
        });
    }
    line->addStretch(1);
    m_fill.push_back([boxes, valuesOf = std::move(valuesOf)](const lessons::Canvas& now) {
        const std::vector<int> values = valuesOf(now);
        for (std::size_t i = 0; i < boxes->size() && i < values.size(); ++i)
            if (!(*boxes)[i]->hasFocus()) (*boxes)[i]->setValue(values[i]);
    });
    addRow(words.label, row, words.tip);
}

QPushButton* StepTools::button(const QString& text, const QString& tip, const QString& command)
{
    auto* made = new QPushButton(text, m_form);
    made->setToolTip(tip);
    connect(made, &QPushButton::clicked, this, [this, command] { emit editAsked(command); });
    return made;
}

void StepTools::setWatched(const std::vector<std::pair<QString, QString>>& figures)
{
    QStringList words, plain;
    for (const auto& [name, value] : figures) {
        words << u"%1 <b>%2</b>"_s.arg(name.toHtmlEscaped(), value.toHtmlEscaped());
        plain << name + u' ' + value;
    }
    QString line = words.join(u" · "_s);
    if (!line.isEmpty()) line[0] = line.at(0).toUpper();
    m_watched->setText(line);
    m_watched->setAccessibleName(u"Now on the canvas: %1"_s.arg(plain.join(u", "_s)));
    m_watched->setVisible(!figures.empty());
    if (!figures.empty())
        show();
    else if (m_tools.empty())
        hide();
}

void StepTools::setStep(const lessons::Lesson* lesson, const lessons::Step* step, const std::vector<std::string>& tools,
                        const lessons::Canvas& canvas)
{
    if (m_form != nullptr && step == m_step && tools == m_tools) return;
    m_step = step;
    m_tools = tools;
    clear();
    m_canvas = canvas;
    const QString view = step == nullptr ? QString() : qs(step->view);
    const bool explores = view == "explorer"_L1 || view == "plan"_L1, gaps = view == "gaps"_L1;
    const bool any = step != nullptr && !tools.empty();
    setVisible(any);
    for (QWidget* part : {static_cast<QWidget*>(m_title), static_cast<QWidget*>(m_words), m_form})
        part->setVisible(any);
    setRefusal({});
    if (!any || lesson == nullptr) return;
    auto allowed = [&](const char* tool) { return lessons::allowsTool(tools, tool); };
    static constexpr std::pair<const char*, const char*> examples[] = {
        {"place", "place 0F0"},      {"move", "move 3B0 after 3F0"},      {"warmup", "warmup 3,2,1,1"},
        {"lag", "lag 0,0,1,1"},      {"text", "rank 3: 3F0 3B0 …"},       {"split", "split"},
        {"library", "load 1f1b"},    {"layers", "set layers=3,3,3,3"},    {"recompute", "set recompute=all"},
        {"share", "set shard=none"}, {"group", "set lower=just-in-time"}, {"microbatches", "set microbatches=4"},
        {"latency", "set comm=0.5"}, {"costs", "set costs=I=2"},          {"chunks", "set chunks=3"},
        {"cap", "set cap=6"}};
    for (const auto& [tool, example] : examples)
        if (allowed(tool)) {
            m_words->setPlaceholderText(u"Type an edit, for example: %1"_s.arg(QString::fromUtf8(example)));
            break;
        }

    if (allowed("library") || allowed("plan")) {
        auto* box = new QComboBox(m_form);
        for (const std::string& name : lesson->uses) box->addItem(scheduleTitle(name), qs(name));
        if (box->count() == 0) box->addItem(scheduleTitle("1f1b"), u"1f1b"_s);
        connect(box, &QComboBox::activated, this,
                [this, box] { emit editAsked(u"load "_s + box->currentData().toString()); });
        m_fill.push_back([box](const lessons::Canvas& now) {
            const int at = box->findData(qs(now.schedule.name).section(u':', 0, 0));
            if (at >= 0) box->setCurrentIndex(at);
        });
        addRow(u"Schedule"_s, box, u"Puts this schedule on the canvas"_s);
    }
    if (allowed("split")) {
        auto* row = new QWidget(m_form);
        auto* line = new QHBoxLayout(row);
        line->setContentsMargins(0, 0, 0, 0);
        line->addWidget(button(
            u"Split B"_s, u"Splits every backward into I, the input gradient, followed by W, the weight gradient"_s,
            u"split"_s));
        line->addWidget(button(u"Merge"_s, u"Merges I and W back into one op"_s, u"merge"_s));
        line->addStretch(1);
        addRow(u"Backward"_s, row, {});
    }
    if (allowed("warmup"))
        addRankBoxes({u"Warm-up"_s, u"Warm-up of rank %1"_s,
                      u"Forwards of each rank before its first backward; then one forward and one backward in turn"_s},
                     u"warmup "_s, canvas.settings.ranks,
                     [](const lessons::Canvas& now) { return lessons::warmupsOf(now.schedule); });
    if (std::find(tools.begin(), tools.end(), "lag") != tools.end())
        addRankBoxes({u"Delay W"_s, u"Backwards by which rank %1 delays its W's"_s,
                      u"By rank: how many backwards later each W runs than its I"_s},
                     u"lag "_s, canvas.settings.ranks, [](const lessons::Canvas& now) {
                         std::vector<int> lags;
                         for (const auto& list : now.schedule.order) {
                             int lag = -1; // input gradients before the first weight gradient, but its own
                             for (const Op& op : list) {
                                 if (isWeightGrad(op.kind)) break;
                                 lag += isInputGrad(op.kind) ? 1 : 0;
                             }
                             lags.push_back(std::max(0, lag));
                         }
                         return lags;
                     });
    if (allowed("layers")) {
        auto* field = new QLineEdit(m_form);
        connect(field, &QLineEdit::returnPressed, this,
                [this, field] { emit editAsked("set layers="_L1 + field->text().remove(u' ')); });
        m_fill.push_back([field](const lessons::Canvas& now) {
            QStringList values;
            for (const double layers : now.settings.layers) values << numberText(layers);
            if (!field->hasFocus()) field->setText(values.join(u','));
        });
        addRow(u"Layers"_s, field, u"Layers of each stage, such as 4,4,3,1; press Enter to apply"_s);
    }
    if (allowed("slow")) {
        auto* field = new QLineEdit(m_form);
        connect(field, &QLineEdit::returnPressed, this,
                [this, field] { emit editAsked("set slow="_L1 + field->text().remove(u' ')); });
        m_fill.push_back([field](const lessons::Canvas& now) {
            QStringList values;
            for (int rank = 0; rank < now.settings.ranks; ++rank)
                values << numberText(static_cast<std::size_t>(rank) < now.settings.slow.size()
                                         ? now.settings.slow[static_cast<std::size_t>(rank)]
                                         : 1);
            if (!field->hasFocus()) field->setText(values.join(u','));
        });
        addRow(u"Ranks take"_s, field,
               u"How many times as long each rank takes, such as 1,1,2,1; press Enter to apply"_s);
    }
    if (allowed("recompute")) {
        auto* field = new QLineEdit(m_form);
        connect(field, &QLineEdit::returnPressed, this,
                [this, field] { emit editAsked("set recompute="_L1 + field->text().trimmed()); });
        m_fill.push_back([field](const lessons::Canvas& now) {
            if (!field->hasFocus()) field->setText(qs(now.settings.recompute));
        });
        addRow(u"Recompute"_s, field, u"Stages that keep only their input: all, none, 0-2; press Enter to apply"_s);
        auto* hoist = new QCheckBox(u"as early as the rank is free"_s, m_form);
        connect(hoist, &QCheckBox::clicked, this,
                [this](bool on) { emit editAsked("set hoist="_L1 + QLatin1String(on ? "yes" : "no")); });
        m_fill.push_back([hoist](const lessons::Canvas& now) { hoist->setChecked(now.settings.hoist); });
        addRow(u"Issued"_s, hoist, u"A recompute needs only the stored input, not the gradient"_s);
    }
    if (allowed("share")) {
        const auto choose = [this](const QString& label, const char* key,
                                   std::initializer_list<std::pair<QString, const char*>> items, auto read,
                                   const QString& tip) {
            auto* box = new QComboBox(m_form);
            for (const auto& [title, value] : items) box->addItem(title, QString::fromLatin1(value));
            box->setAccessibleName(label);
            connect(box, &QComboBox::activated, this, [this, box, key] {
                emit editAsked(u"set %1=%2"_s.arg(QLatin1String(key), box->currentData().toString()));
            });
            m_fill.push_back([box, read](const lessons::Canvas& now) {
                box->setCurrentIndex(std::max(0, box->findData(qs(read(now.settings)))));
            });
            addRow(label, box, tip);
        };
        using S = lessons::Settings;
        choose(
            u"Share"_s, "shard",
            {{u"nothing"_s, "none"},
             {u"optimizer state (ZeRO 1)"_s, "optimizer"},
             {u"and gradients (ZeRO 2)"_s, "gradients"},
             {u"and weights (ZeRO 3)"_s, "weights"}},
            [](const S& s) { return s.shard; }, u"What replicas share instead of each having all of it"_s);
        if (allowed("shard"))
            choose(
                u"Gather"_s, "gather",
                {{u"once a batch"_s, "batch"},
                 {u"one stage ahead"_s, "batch:prefetch=1"},
                 {u"for each microbatch"_s, "microbatch"},
                 {u"the same, one op ahead"_s, "microbatch:prefetch=1"}},
                [](const S& s) { return s.gather; }, u"When shared weights are gathered"_s);
        if (allowed("shard"))
            choose(
                u"Reduce"_s, "reduce",
                {{u"at the end"_s, "late"},
                 {u"stage by stage"_s, "overlapped"},
                 {u"each microbatch"_s, "microbatch"},
                 {u"stage by stage, then update"_s, "stepped"}},
                [](const S& s) { return s.reduce; }, u"When gradients are summed over the replicas"_s);
    }
    if (allowed("group")) {
        auto* box = new QComboBox(m_form);
        for (const auto& [title, rule] :
             {std::pair(u"just in time"_s, "just-in-time"), std::pair(u"rank parity"_s, "rank-parity"),
              std::pair(u"grouped"_s, "grouped")})
            box->addItem(title, QLatin1String(rule));
        connect(box, &QComboBox::activated, this,
                [this, box] { emit editAsked("set lower="_L1 + box->currentData().toString()); });
        addRow(u"Messages"_s, box, u"The rule that inserts sends and receives into the order"_s);
    }
    {
        // A slider over the values that matter, and a field for any other.
        auto withSlider = [&](const QString& label, auto* box, double low, double high, double step_,
                              const QString& tip) {
            auto* row = new QWidget(m_form);
            auto* line = new QHBoxLayout(row);
            line->setContentsMargins(0, 0, 0, 0);
            auto* slider = new QSlider(Qt::Horizontal, row);
            slider->setRange(static_cast<int>(std::lround(low / step_)), static_cast<int>(std::lround(high / step_)));
            slider->setAccessibleName(label);
            box->setParent(row);
            box->setFixedWidth(92);
            box->setAccessibleName(u"%1, value"_s.arg(label));
            line->addWidget(slider, 1);
            line->addWidget(box);
            connect(slider, &QSlider::valueChanged, box, [box, slider, step_](int at) {
                if (slider->hasFocus() || slider->isSliderDown())
                    box->setValue(static_cast<std::decay_t<decltype(box->value())>>(at * step_));
            });
            connect(box, &std::remove_pointer_t<decltype(box)>::valueChanged, slider, [slider, step_](auto value) {
                slider->setValue(static_cast<int>(std::lround(static_cast<double>(value) / step_)));
            });
            addRow(label, row, tip);
        };
        auto whole = [&](const QString& label, const QString& key, int low, int high, auto read, const QString& tip,
                         const QString& least = {}) {
            auto* box = new QSpinBox(m_form);
            box->setRange(low, 64);
            box->setSpecialValueText(least);
            box->setKeyboardTracking(false);
            connect(box, &QSpinBox::valueChanged, this, [this, key](int value) {
                if (!m_filling) emit editAsked(u"set %1=%2"_s.arg(key).arg(value));
            });
            withSlider(label, box, low, high, 1, tip);
            m_fill.push_back([box, read](const lessons::Canvas& now) { box->setValue(read(now.settings)); });
        };
        auto number = [&](const QString& label, const QString& key, double high, double step_, auto read,
                          const QString& tip, const QString& least = {}) {
            auto* box = new QDoubleSpinBox(m_form);
            box->setRange(0, 64);
            box->setSpecialValueText(least);
            box->setDecimals(3);
            box->setSingleStep(step_);
            box->setKeyboardTracking(false);
            connect(box, &QDoubleSpinBox::valueChanged, this, [this, key](double value) {
                if (!m_filling)
                    emit editAsked(u"set "_s +
                                   (key == "cap=%1"_L1 && value <= 0 ? u"cap=none"_s : key.arg(numberText(value))));
            });
            withSlider(label, box, 0, high, step_, tip);
            m_fill.push_back([box, read](const lessons::Canvas& now) { box->setValue(read(now.settings)); });
        };
        using S = lessons::Settings;
        if (allowed("microbatches"))
            whole(
                u"Microbatches"_s, u"microbatches"_s, 1, 32, [](const S& s) { return s.microbatches; },
                u"m: microbatches per step"_s);
        if (allowed("chunks"))
            whole(
                u"Chunks"_s, u"chunks"_s, 0, 8, [](const S& s) { return s.chunks; },
                u"v: stages per rank; minimum: the schedule default"_s, u"default"_s);
        if (allowed("latency"))
            number(
                u"Latency"_s, u"comm=%1"_s, 4, 0.125, [](const S& s) { return s.comm; },
                u"c: how long a message takes between ranks, in units"_s);
        if (allowed("costs"))
            number(
                u"W"_s, u"costs=W=%1"_s, 3, 0.25, [](const S& s) { return s.units().weightGrad; },
                u"How long a weight gradient takes, in units"_s);
        if (allowed("cap"))
            number(
                u"Cap"_s, u"cap=%1"_s, 16, 1, [](const S& s) { return s.cap().value_or(0); },
                u"Activations that a rank may hold; minimum: any number"_s, u"any"_s);
    }
    const char* const edits[] = {"move", "place", "split", "warmup", "text"};
    if (!step->compare.empty() && std::any_of(std::begin(edits), std::end(edits), allowed)) {
        auto* outlines = new QPushButton(u"Outlines of %1"_s.arg(scheduleTitle(step->compare)), m_form);
        connect(outlines, &QPushButton::clicked, this, [this] { emit viewAsked(u"compare"_s); });
        addRow(u"Compare"_s, outlines,
               u"Outlines where its ops would be; again: hides them. Its figures are in Details  (Shift+O)"_s);
    }
    if (explores || gaps) { // views that would cover the canvas open on request
        auto* open = new QPushButton(explores ? u"Open the explorer"_s : u"Explain the longest gap"_s, m_form);
        connect(open, &QPushButton::clicked, this, [this, view] { emit viewAsked(view); });
        addRow(u"Open"_s, open,
               explores ? u"Every schedule for a shape, costs and a memory cap; return with Learn › Lessons"_s
                        : u"Press G for the next longest"_s);
    }
    auto* own = new QWidget(m_form);
    auto* line = new QHBoxLayout(own);
    line->setContentsMargins(0, 0, 0, 0);
    auto* undo = new QPushButton(u"Undo"_s, own);
    undo->setToolTip(u"Undoes the last change  (Ctrl+Z)"_s);
    connect(undo, &QPushButton::clicked, this, &StepTools::undoAsked);
    auto* reset = new QPushButton(u"Restart the step"_s, own);
    reset->setToolTip(u"Resets the canvas to the start of the step"_s);
    connect(reset, &QPushButton::clicked, this, &StepTools::resetAsked);
    line->addWidget(undo);
    line->addWidget(reset);
    line->addStretch(1);
    m_grid->addWidget(own, m_grid->rowCount(), 0, 1, 2);
    setCanvas(canvas);
}

void StepTools::setCanvas(const lessons::Canvas& canvas)
{
    m_canvas = canvas;
    m_filling = true;
    for (const auto& fill : m_fill) fill(canvas);
    m_filling = false;
}

} // namespace stagewright
