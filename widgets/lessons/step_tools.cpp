#include "widgets/lessons/step_tools.h"

#include <algorithm>

#include <QCheckBox>
#include <QComboBox>
#include <QDoubleSpinBox>
#include <QGridLayout>
#include <QHBoxLayout>
#include <QLabel>
#include <QLineEdit>
#include <QPushButton>
#include <QSpinBox>
#include <QVBoxLayout>

#include "schedules/model/op.h"
#include "widgets/lessons/page_reading.h"
#include "widgets/style.h"

namespace stagewright {
namespace {

QString numberText(double value) { return QString::number(value, 'g', 6); }

// Forwards before the first backward, by rank.
std::vector<int> warmupsOf(const Schedule& schedule)
{
    std::vector<int> warmups;
    for (const auto& rank : schedule.order) {
        int forwards = 0;
        for (const Op& op : rank) {
            if (op.kind == OpKind::Backward || op.kind == OpKind::InputGrad) break;
            if (op.kind == OpKind::Forward) ++forwards;
        }
        warmups.push_back(forwards);
    }
    return warmups;
}

void dropItems(QLayout* layout)
{
    while (QLayoutItem* item = layout->takeAt(0)) {
        if (QWidget* widget = item->widget()) {
            widget->hide();
            widget->deleteLater();
        }
        if (QLayout* inner = item->layout()) dropItems(inner);
        delete item;
    }
}

} // namespace

StepTools::StepTools(QWidget* parent) : QWidget(parent)
{
    m_layout = new QVBoxLayout(this);
    m_layout->setContentsMargins(0, 0, 0, 0);
    m_layout->setSpacing(8);
    m_layout->addWidget(makeLabel(tr("Tools"), "title", this));
    m_chips = new QWidget(this);
    m_chips->setLayout(new QGridLayout);
    m_chips->layout()->setContentsMargins(0, 0, 0, 0);
    static_cast<QGridLayout*>(m_chips->layout())->setSpacing(4);
    m_layout->addWidget(m_chips);
    m_tray = new QWidget(this);
    m_tray->setLayout(new QGridLayout);
    m_tray->layout()->setContentsMargins(0, 0, 0, 0);
    static_cast<QGridLayout*>(m_tray->layout())->setSpacing(4);
    m_tray->setAccessibleName(tr("Tray of ops to place"));
    m_layout->addWidget(m_tray);
    m_words = new QLineEdit(this);
    m_words->setObjectName(QStringLiteral("editInWords"));
    m_words->setPlaceholderText(tr("Type an edit, for example: move 3B0 after 3F0"));
    m_words->setAccessibleName(tr("Typed edit"));
    m_words->setToolTip(tr("move 3B0 after 3F0 · swap 1F0 1F1 · rank 3: 3F0 3B0 3F1 … · warmup 3,2,1,0 · split · lag 0,1,2,3 · place 1F1 3 · set comm=0.5\n"
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

void StepTools::setTheme(const Theme& theme)
{
    m_theme = &theme;
    fillTray();
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
    dropItems(m_chips->layout());
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
    const bool explores = view == QLatin1String("explorer") || view == QLatin1String("plan"), gaps = view == QLatin1String("gaps");
    setVisible(step != nullptr && (!step->allow.empty() || explores || gaps));
    setRefusal({});
    if (step == nullptr || lesson == nullptr) return;
    auto allowed = [&](const char* tool) { return std::find(step->allow.begin(), step->allow.end(), tool) != step->allow.end(); };

    auto* chips = static_cast<QGridLayout*>(m_chips->layout());
    int at = 0;
    for (const lessons::Tool& tool : lessons::tools()) {
        const bool live = allowed(std::string(tool.name).c_str());
        auto* chip = makeLabel(qs(std::string(tool.title)), live ? "chip" : "chipOff", m_chips);
        chip->setToolTip(live ? tr("Allowed in this step.") : tr("Not in this step: one idea at a time. Leave the lesson to edit freely."));
        chip->setAccessibleName(live ? tr("%1, allowed").arg(chip->text()) : tr("%1, not in this step").arg(chip->text()));
        chip->setAlignment(Qt::AlignCenter);
        chips->addWidget(chip, at / 4, at % 4);
        ++at;
    }

    if (allowed("library") || allowed("plan")) {
        auto* box = new QComboBox(m_form);
        for (const std::string& name : lesson->uses) box->addItem(qs(name));
        if (box->count() == 0) box->addItem(QStringLiteral("1f1b"));
        connect(box, &QComboBox::activated, this, [this, box] { emit editAsked(QStringLiteral("load ") + box->currentText()); });
        addRow(tr("Schedule"), box, tr("Puts this schedule on the canvas"));
    }
    if (allowed("split")) {
        auto* row = new QWidget(m_form);
        auto* line = new QHBoxLayout(row);
        line->setContentsMargins(0, 0, 0, 0);
        line->addWidget(button(tr("Split B"), tr("Splits every backward into I, the input gradient, followed by W, the weight gradient"), QStringLiteral("split")));
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
            const std::vector<int> warmups = warmupsOf(now.schedule);
            for (std::size_t i = 0; i < boxes->size() && i < warmups.size(); ++i)
                if (!(*boxes)[i]->hasFocus()) (*boxes)[i]->setValue(warmups[i]);
        });
        addRow(tr("Warm-up"), row, tr("Forwards of each rank before its first backward; then one forward and one backward in turn"));
    }
    if (allowed("layers")) {
        auto* field = new QLineEdit(m_form);
        connect(field, &QLineEdit::returnPressed, this, [this, field] { emit editAsked(QLatin1String("set layers=") + field->text().remove(QLatin1Char(' '))); });
        m_fill.push_back([field](const lessons::Canvas& now) {
            QStringList values;
            for (const double layers : now.settings.layers) values << numberText(layers);
            if (!field->hasFocus()) field->setText(values.join(QLatin1Char(',')));
        });
        addRow(tr("Layers"), field, tr("Layers of each stage, such as 4,4,3,1; press Enter to apply"));
    }
    if (allowed("recompute")) {
        auto* field = new QLineEdit(m_form);
        connect(field, &QLineEdit::returnPressed, this, [this, field] { emit editAsked(QLatin1String("set recompute=") + field->text().trimmed()); });
        m_fill.push_back([field](const lessons::Canvas& now) {
            if (!field->hasFocus()) field->setText(qs(now.settings.recompute));
        });
        addRow(tr("Recompute"), field, tr("Stages that keep only their input: all, none, 0-2; press Enter to apply"));
        auto* hoist = new QCheckBox(tr("as early as the rank is free"), m_form);
        connect(hoist, &QCheckBox::clicked, this, [this](bool on) { emit editAsked(QLatin1String("set hoist=") + QLatin1String(on ? "yes" : "no")); });
        m_fill.push_back([hoist](const lessons::Canvas& now) { hoist->setChecked(now.settings.hoist); });
        addRow(tr("Issued"), hoist, tr("A recompute needs only the stored input, not the gradient"));
    }
    if (allowed("group")) {
        auto* box = new QComboBox(m_form);
        for (const char* rule : {"just-in-time", "rank-parity", "grouped"}) box->addItem(QString::fromLatin1(rule));
        connect(box, &QComboBox::activated, this, [this, box] { emit editAsked(QLatin1String("set lower=") + box->currentText()); });
        addRow(tr("Messages"), box, tr("The rule that inserts sends and receives into the order"));
    }
    if (allowed("settings")) {
        auto whole = [&](const QString& label, const QString& key, int low, int high, auto read, const QString& tip, const QString& least = {}) {
            auto* box = new QSpinBox(m_form);
            box->setRange(low, high);
            box->setSpecialValueText(least);
            box->setKeyboardTracking(false);
            connect(box, &QSpinBox::valueChanged, this, [this, key](int value) {
                if (!m_filling) emit editAsked(QStringLiteral("set %1=%2").arg(key).arg(value));
            });
            m_fill.push_back([box, read](const lessons::Canvas& now) { box->setValue(read(now.settings)); });
            addRow(label, box, tip);
        };
        auto number = [&](const QString& label, const QString& key, double step_, auto read, const QString& tip, const QString& least = {}) {
            auto* box = new QDoubleSpinBox(m_form);
            box->setRange(0, 64);
            box->setSpecialValueText(least);
            box->setDecimals(3);
            box->setSingleStep(step_);
            box->setKeyboardTracking(false);
            connect(box, &QDoubleSpinBox::valueChanged, this, [this, key](double value) {
                if (!m_filling) emit editAsked(QStringLiteral("set ") + (key == QLatin1String("cap=%1") && value <= 0 ? QStringLiteral("cap=none") : key.arg(numberText(value))));
            });
            m_fill.push_back([box, read](const lessons::Canvas& now) { box->setValue(read(now.settings)); });
            addRow(label, box, tip);
        };
        using S = lessons::Settings;
        whole(
            tr("Microbatches"), QStringLiteral("microbatches"), 1, 64, [](const S& s) { return s.microbatches; }, tr("m: microbatches per step"));
        whole(
            tr("Chunks"), QStringLiteral("chunks"), 0, 8, [](const S& s) { return s.chunks; }, tr("v: stages per rank; minimum: the schedule default"), tr("schedule default"));
        number(
            tr("Latency"), QStringLiteral("comm=%1"), 0.125, [](const S& s) { return s.comm; }, tr("c: message time between ranks, in forwards of a rank share"));
        number(
            tr("W"), QStringLiteral("costs=W=%1"), 0.25, [](const S& s) { return s.weightGrad; }, tr("Cost of a weight gradient, in rank shares"));
        number(
            tr("Cap"), QStringLiteral("cap=%1"), 1, [](const S& s) { return s.cap.value_or(0); }, tr("Activations that a rank may hold; minimum: any number"), tr("any"));
    }
    const char* const edits[] = {"move", "place", "split", "warmup", "text"};
    if (!step->compare.empty() && std::any_of(std::begin(edits), std::end(edits), allowed)) {
        auto* outlines = new QPushButton(tr("Outlines of %1").arg(qs(step->compare)), m_form);
        connect(outlines, &QPushButton::clicked, this, [this] { emit viewAsked(QStringLiteral("compare")); });
        addRow(tr("Compare"), outlines, tr("Outlines where its ops would be; again: hides them. Its figures are in Details  (Shift+O)"));
    }
    if (explores || gaps) { // views that would cover the canvas open on request
        auto* open = new QPushButton(explores ? tr("Open the explorer") : tr("Explain the longest gap"), m_form);
        connect(open, &QPushButton::clicked, this, [this, view] { emit viewAsked(view); });
        addRow(tr("Open"), open, explores ? tr("Every schedule for a shape, costs and a memory cap; return with Learn ▸ Lessons") : tr("Press G for the next longest"));
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
    fillTray();
}

// Unplaced ops, by rank; a click puts one at the end of its rank's row.
void StepTools::fillTray()
{
    dropItems(m_tray->layout());
    const auto tray = lessons::trayOf(m_canvas.schedule);
    auto* grid = static_cast<QGridLayout*>(m_tray->layout());
    int row = 0;
    for (std::size_t rank = 0; rank < tray.size(); ++rank) {
        if (tray[rank].empty()) continue;
        grid->addWidget(makeLabel(tr("Rank %1").arg(rank), "secondary", m_tray), row, 0);
        for (std::size_t i = 0; i < tray[rank].size(); ++i) {
            const QString text = qs(toText(tray[rank][i]));
            auto* op = new QPushButton(text, m_tray);
            const Fill& fill = m_theme->of(tray[rank][i].kind);
            op->setStyleSheet(QStringLiteral("QPushButton { background: %1; color: %2; border: 2px solid %1; border-radius: 3px; padding: 3px 5px; font-weight: 600; }"
                                             "QPushButton:focus { border-color: %3; }")
                                  .arg(fill.fill.name(), fill.label.name(), m_theme->text.name()));
            op->setToolTip(tr("Puts %1 at the end of rank %2").arg(text).arg(rank));
            op->setAccessibleName(tr("Place %1").arg(text));
            const std::size_t end = rank < m_canvas.schedule.order.size() ? m_canvas.schedule.order[rank].size() : 0;
            connect(op, &QPushButton::clicked, this, [this, text, end] { emit editAsked(QStringLiteral("place %1 %2").arg(text).arg(end)); });
            grid->addWidget(op, row + static_cast<int>(i) / 5, 1 + static_cast<int>(i) % 5);
        }
        row += 1 + static_cast<int>(tray[rank].size() - 1) / 5;
    }
    grid->setColumnStretch(7, 1);
    m_tray->setVisible(row > 0);
}

} // namespace stagewright
