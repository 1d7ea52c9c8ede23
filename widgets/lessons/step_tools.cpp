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

#include "traces/lessons/reports.h"
#include "widgets/lessons/page_reading.h"
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
    m_layout->addWidget(makeLabel(tr("Tools"), "title", this));
    m_wheel = new WheelPasses(this);
    m_words = new QLineEdit(this);
    m_words->setObjectName(QStringLiteral("editInWords"));
    m_words->setPlaceholderText(tr("Type an edit, for example: move 3B0 after 3F0"));
    m_words->setAccessibleName(tr("Typed edit"));
    m_words->setToolTip(tr("move 3B0 after 3F0 · swap 1F0 1F1 · rank 3: 3F0 3B0 3F1 … · warmup 3,2,1,0 · split · lag "
                           "0,1,2,3 · place 1F1 3 · set comm=0.5\n"
                           "Press Enter to apply. Only the tools that this step allows work."));
    connect(m_words, &QLineEdit::returnPressed, this, [this] {
        if (!m_words->text().trimmed().isEmpty()) emit editAsked(m_words->text().trimmed());
    });
    m_layout->addWidget(m_words);
    m_refusal = makeLabel({}, "worse", this, true);
    m_refusal->setWordWrap(true);
    m_refusal->setAccessibleName(tr("Why it is not possible"));
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
    m_layout->insertWidget(1, m_form);
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

QPushButton* StepTools::button(const QString& text, const QString& tip, const QString& command)
{
    auto* made = new QPushButton(text, m_form);
    made->setToolTip(tip);
    connect(made, &QPushButton::clicked, this, [this, command] { emit editAsked(command); });
    return made;
}

void StepTools::setStep(const lessons::Lesson* lesson, const lessons::Step* step, const lessons::Canvas& canvas)
{
    clear();
    m_canvas = canvas;
    const QString view = step == nullptr ? QString() : qs(step->view);
    const bool explores = view == QLatin1String("explorer") || view == QLatin1String("plan"),
               gaps = view == QLatin1String("gaps");
    setVisible(step != nullptr && (!step->allow.empty() || explores || gaps));
    setRefusal({});
    if (step == nullptr || lesson == nullptr) return;
    auto allowed = [&](const char* tool) {
        return std::find(step->allow.begin(), step->allow.end(), tool) != step->allow.end();
    };

    if (allowed("library") || allowed("plan")) {
        auto* box = new QComboBox(m_form);
        for (const std::string& name : lesson->uses) box->addItem(scheduleTitle(name), qs(name));
        if (box->count() == 0) box->addItem(scheduleTitle("1f1b"), QStringLiteral("1f1b"));
        connect(box, &QComboBox::activated, this,
                [this, box] { emit editAsked(QStringLiteral("load ") + box->currentData().toString()); });
        m_fill.push_back([box](const lessons::Canvas& now) {
            const int at = box->findData(qs(now.schedule.name).section(QLatin1Char(':'), 0, 0));
            if (at >= 0) box->setCurrentIndex(at);
        });
        addRow(tr("Schedule"), box, tr("Puts this schedule on the canvas"));
    }
    if (allowed("split")) {
        auto* row = new QWidget(m_form);
        auto* line = new QHBoxLayout(row);
        line->setContentsMargins(0, 0, 0, 0);
        line->addWidget(button(
            tr("Split B"), tr("Splits every backward into I, the input gradient, followed by W, the weight gradient"),
            QStringLiteral("split")));
        line->addWidget(button(tr("Merge"), tr("Merges I and W back into one op"), QStringLiteral("merge")));
        line->addStretch(1);
        addRow(tr("Backward"), row, {});
    }
    if (allowed("warmup")) {
        auto* row = new QWidget(m_form);
        auto* line = new QHBoxLayout(row);
        line->setContentsMargins(0, 0, 0, 0);
        line->setSpacing(4);
        auto boxes = std::make_shared<std::vector<QSpinBox*>>();
        for (int rank = 0; rank < canvas.settings.ranks && rank < 8; ++rank) {
            auto* box = new QSpinBox(row);
            box->setRange(0, 64);
            box->setFixedWidth(52);
            box->setKeyboardTracking(false);
            box->setAccessibleName(tr("Warm-up of rank %1").arg(rank));
            boxes->push_back(box);
            line->addWidget(box);
            connect(box, &QSpinBox::valueChanged, this, [this, boxes] {
                if (m_filling) return;
                QStringList values;
                for (const QSpinBox* one : *boxes) values << QString::number(one->value());
                emit editAsked(QStringLiteral("warmup ") + values.join(QLatin1Char(',')));
            });
        }
        line->addStretch(1);
        m_fill.push_back([boxes](const lessons::Canvas& now) {
            const std::vector<int> warmups = lessons::warmupsOf(now.schedule);
            for (std::size_t i = 0; i < boxes->size() && i < warmups.size(); ++i)
                if (!(*boxes)[i]->hasFocus()) (*boxes)[i]->setValue(warmups[i]);
        });
        addRow(tr("Warm-up"), row,
               tr("Forwards of each rank before its first backward; then one forward and one backward in turn"));
    }
    if (allowed("layers")) {
        auto* field = new QLineEdit(m_form);
        connect(field, &QLineEdit::returnPressed, this, [this, field] {
            emit editAsked(QLatin1String("set layers=") + field->text().remove(QLatin1Char(' ')));
        });
        m_fill.push_back([field](const lessons::Canvas& now) {
            QStringList values;
            for (const double layers : now.settings.layers) values << numberText(layers);
            if (!field->hasFocus()) field->setText(values.join(QLatin1Char(',')));
        });
        addRow(tr("Layers"), field, tr("Layers of each stage, such as 4,4,3,1; press Enter to apply"));
    }
    if (allowed("recompute")) {
        auto* field = new QLineEdit(m_form);
        connect(field, &QLineEdit::returnPressed, this,
                [this, field] { emit editAsked(QLatin1String("set recompute=") + field->text().trimmed()); });
        m_fill.push_back([field](const lessons::Canvas& now) {
            if (!field->hasFocus()) field->setText(qs(now.settings.recompute));
        });
        addRow(tr("Recompute"), field, tr("Stages that keep only their input: all, none, 0-2; press Enter to apply"));
        auto* hoist = new QCheckBox(tr("as early as the rank is free"), m_form);
        connect(hoist, &QCheckBox::clicked, this,
                [this](bool on) { emit editAsked(QLatin1String("set hoist=") + QLatin1String(on ? "yes" : "no")); });
        m_fill.push_back([hoist](const lessons::Canvas& now) { hoist->setChecked(now.settings.hoist); });
        addRow(tr("Issued"), hoist, tr("A recompute needs only the stored input, not the gradient"));
    }
    if (allowed("shard")) {
        const auto choose = [this](const QString& label, const char* key,
                                   std::initializer_list<std::pair<QString, const char*>> items, auto read,
                                   const QString& tip) {
            auto* box = new QComboBox(m_form);
            for (const auto& [title, value] : items) box->addItem(title, QString::fromLatin1(value));
            box->setAccessibleName(label);
            connect(box, &QComboBox::activated, this, [this, box, key] {
                emit editAsked(QStringLiteral("set %1=%2").arg(QLatin1String(key), box->currentData().toString()));
            });
            m_fill.push_back([box, read](const lessons::Canvas& now) {
                box->setCurrentIndex(std::max(0, box->findData(qs(read(now.settings)))));
            });
            addRow(label, box, tip);
        };
        using S = lessons::Settings;
        choose(
            tr("Share"), "shard",
            {{tr("nothing"), "none"},
             {tr("optimizer state (ZeRO 1)"), "optimizer"},
             {tr("and gradients (ZeRO 2)"), "gradients"},
             {tr("and weights (ZeRO 3)"), "weights"}},
            [](const S& s) { return s.shard; }, tr("What replicas share instead of each having all of it"));
        choose(
            tr("Gather"), "gather",
            {{tr("once a batch"), "batch"},
             {tr("one stage ahead"), "batch:prefetch=1"},
             {tr("for each microbatch"), "microbatch"},
             {tr("the same, one op ahead"), "microbatch:prefetch=1"}},
            [](const S& s) { return s.gather; }, tr("When shared weights are gathered"));
        choose(
            tr("Reduce"), "reduce",
            {{tr("at the end"), "late"},
             {tr("stage by stage"), "overlapped"},
             {tr("each microbatch"), "microbatch"},
             {tr("stage by stage, then update"), "stepped"}},
            [](const S& s) { return s.reduce; }, tr("When gradients are summed over the replicas"));
    }
    if (allowed("group")) {
        auto* box = new QComboBox(m_form);
        for (const auto& [title, rule] :
             {std::pair(tr("just in time"), "just-in-time"), std::pair(tr("rank parity"), "rank-parity"),
              std::pair(tr("grouped"), "grouped")})
            box->addItem(title, QLatin1String(rule));
        connect(box, &QComboBox::activated, this,
                [this, box] { emit editAsked(QLatin1String("set lower=") + box->currentData().toString()); });
        addRow(tr("Messages"), box, tr("The rule that inserts sends and receives into the order"));
    }
    if (allowed("settings")) {
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
            box->setAccessibleName(tr("%1, value").arg(label));
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
                if (!m_filling) emit editAsked(QStringLiteral("set %1=%2").arg(key).arg(value));
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
                    emit editAsked(QStringLiteral("set ") + (key == QLatin1String("cap=%1") && value <= 0
                                                                 ? QStringLiteral("cap=none")
                                                                 : key.arg(numberText(value))));
            });
            withSlider(label, box, 0, high, step_, tip);
            m_fill.push_back([box, read](const lessons::Canvas& now) { box->setValue(read(now.settings)); });
        };
        using S = lessons::Settings;
        whole(
            tr("Microbatches"), QStringLiteral("microbatches"), 1, 32, [](const S& s) { return s.microbatches; },
            tr("m: microbatches per step"));
        whole(
            tr("Chunks"), QStringLiteral("chunks"), 0, 8, [](const S& s) { return s.chunks; },
            tr("v: stages per rank; minimum: the schedule default"), tr("default"));
        number(
            tr("Latency"), QStringLiteral("comm=%1"), 4, 0.125, [](const S& s) { return s.comm; },
            tr("c: how long a message takes between ranks, in units"));
        number(
            tr("W"), QStringLiteral("costs=W=%1"), 3, 0.25, [](const S& s) { return s.weightGrad; },
            tr("How long a weight gradient takes, in units"));
        number(
            tr("Cap"), QStringLiteral("cap=%1"), 16, 1, [](const S& s) { return s.cap.value_or(0); },
            tr("Activations that a rank may hold; minimum: any number"), tr("any"));
    }
    const char* const edits[] = {"move", "place", "split", "warmup", "text"};
    if (!step->compare.empty() && std::any_of(std::begin(edits), std::end(edits), allowed)) {
        auto* outlines = new QPushButton(tr("Outlines of %1").arg(scheduleTitle(step->compare)), m_form);
        connect(outlines, &QPushButton::clicked, this, [this] { emit viewAsked(QStringLiteral("compare")); });
        addRow(tr("Compare"), outlines,
               tr("Outlines where its ops would be; again: hides them. Its figures are in Details  (Shift+O)"));
    }
    if (explores || gaps) { // views that would cover the canvas open on request
        auto* open = new QPushButton(explores ? tr("Open the explorer") : tr("Explain the longest gap"), m_form);
        connect(open, &QPushButton::clicked, this, [this, view] { emit viewAsked(view); });
        addRow(tr("Open"), open,
               explores ? tr("Every schedule for a shape, costs and a memory cap; return with Learn ▸ Lessons")
                        : tr("Press G for the next longest"));
    }
    auto* own = new QWidget(m_form);
    auto* line = new QHBoxLayout(own);
    line->setContentsMargins(0, 0, 0, 0);
    auto* undo = new QPushButton(tr("Undo"), own);
    undo->setToolTip(tr("Undoes the last change  (Ctrl+Z)"));
    connect(undo, &QPushButton::clicked, this, &StepTools::undoAsked);
    auto* reset = new QPushButton(tr("Restart the step"), own);
    reset->setToolTip(tr("Resets the canvas to the start of the step"));
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
