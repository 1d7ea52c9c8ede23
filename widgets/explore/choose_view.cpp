#include "widgets/explore/choose_view.h"

#include <algorithm>

#include <QClipboard>
#include <QGridLayout>
#include <QGuiApplication>
#include <QHBoxLayout>
#include <QHeaderView>
#include <QLabel>
#include <QSettings>
#include <QSortFilterProxyModel>
#include <QSplitter>
#include <QStandardItemModel>
#include <QVBoxLayout>

#include "widgets/explore/survey_text.h"
#include "widgets/literals.h"
#include "widgets/style.h"

namespace stagewright {

namespace {

constexpr int sortRole = Qt::UserRole, wayRole = Qt::UserRole + 1;

const SurveyInfo& chooseSurvey() { return **findSurvey("choose"); }

QVariant sortValue(const TableCell& cell)
{
    if (const auto* whole = std::get_if<std::int64_t>(&cell)) return static_cast<double>(*whole);
    if (const auto* real = std::get_if<double>(&cell)) return *real;
    if (const auto* text = std::get_if<std::string>(&cell)) return qtText(*text);
    return 1e300; // unknown: last
}

// A line that is read and copied, not written.
QLineEdit* commandLine(const QString& name, QGridLayout* grid, int row, QWidget* parent)
{
    auto* line = new QLineEdit(parent);
    line->setReadOnly(true);
    line->setAccessibleName(name);
    auto* copy = new QPushButton(u"Copy"_s, parent);
    copy->setToolTip(u"Copies it to the clipboard"_s);
    QObject::connect(copy, &QPushButton::clicked, line,
                     [line] { QGuiApplication::clipboard()->setText(line->text()); });
    grid->addWidget(makeLabel(name, "secondary", parent), row, 0);
    grid->addWidget(line, row, 1);
    grid->addWidget(copy, row, 2);
    return line;
}

} // namespace

ChooseView::ChooseView(QWidget* parent) : QWidget(parent)
{
    auto* column = new QVBoxLayout(this);
    column->setContentsMargins(8, 6, 8, 6);
    column->setSpacing(6);
    m_form = new QWidget(this);
    auto* form = new QVBoxLayout(m_form);
    form->setContentsMargins(0, 0, 0, 0);
    form->setSpacing(3);
    for (const SurveyField& field : chooseSurvey().fields()) {
        m_fields.push_back(makeSurveyControl(field, m_form, [this] { emit questionChanged(); }));
        form->addWidget(m_fields.back().label);
        form->addWidget(m_fields.back().widget);
        if (field.name == "layers-from") {
            m_measured = new QPushButton(u"Of the shown run"_s, m_form);
            m_measured->setToolTip(u"The layers and the model of the run on the timeline"_s);
            form->addWidget(m_measured);
        }
        form->addSpacing(3);
    }
    connect(m_measured, &QPushButton::clicked, this, &ChooseView::measuredAsked);
    m_free = new QPushButton(u"Free all"_s, m_form);
    m_free->setToolTip(u"Nothing is pinned"_s);
    form->addWidget(m_free);
    m_setup = makeLabel({}, "secondary", this, true);
    m_setup->setObjectName(u"waysSetup"_s);
    m_setup->setWordWrap(true);
    column->addWidget(m_setup);

    m_time = new PlotWidget(u"waysTime"_s, u"Steps of the ways by what they are made of"_s);
    m_memory = new PlotWidget(u"waysMemory"_s, u"Memory of the ways against the cap"_s);
    m_degrees = new PlotWidget(u"waysDegrees"_s, u"Best way by devices that share a layer and by stages"_s);
    m_table = new QTableView;
    auto* rows = new QSplitter(Qt::Vertical, this);
    auto* upper = new QSplitter(Qt::Horizontal, rows);
    auto* bars = new QSplitter(Qt::Vertical, upper);
    for (QSplitter* split : {rows, upper, bars}) {
        split->setHandleWidth(1);
        split->setChildrenCollapsible(false);
    }
    m_time->setUsualSize({560, 240});
    m_memory->setUsualSize({560, 150});
    m_degrees->setUsualSize({420, 390});
    bars->addWidget(m_time);
    bars->addWidget(m_memory);
    bars->setSizes({240, 160});
    upper->addWidget(bars);
    upper->addWidget(m_degrees);
    upper->setSizes({560, 420});
    rows->addWidget(upper);
    rows->addWidget(m_table);
    rows->setSizes({420, 190});
    column->addWidget(rows, 1);

    m_rows = new QStandardItemModel(this);
    auto* sorted = new QSortFilterProxyModel(this);
    sorted->setSourceModel(m_rows);
    sorted->setSortRole(sortRole);
    m_table->setObjectName(u"waysTable"_s);
    m_table->setAccessibleName(u"Ways to divide the model"_s);
    m_table->setModel(sorted);
    m_table->setSortingEnabled(true);
    m_table->sortByColumn(0, Qt::AscendingOrder);
    m_table->setEditTriggers(QAbstractItemView::NoEditTriggers);
    m_table->setSelectionBehavior(QAbstractItemView::SelectRows);
    m_table->setSelectionMode(QAbstractItemView::SingleSelection);
    m_table->setShowGrid(false);
    m_table->setWordWrap(false);
    m_table->setTabKeyNavigation(false);
    m_table->setFrameShape(QFrame::NoFrame);
    m_table->verticalHeader()->hide();
    m_table->verticalHeader()->setDefaultSectionSize(23);
    m_table->horizontalHeader()->setHighlightSections(false);
    m_table->horizontalHeader()->setSectionResizeMode(QHeaderView::ResizeToContents);
    makeCopyable(static_cast<QAbstractItemView*>(m_table));
    for (PlotWidget* picture : {m_time, m_memory})
        makeCopyable(picture, [this] { return m_answer ? tableTextOf(waysTable(*m_answer)) : TableText(); });
    makeCopyable(m_degrees, [this] { return m_answer ? tableTextOf(degreesTable(*m_answer)) : TableText(); });

    m_said = makeLabel({}, "value", this, true);
    m_said->setObjectName(u"waySaid"_s);
    m_said->setWordWrap(true);
    column->addWidget(m_said);
    auto* commands = new QGridLayout;
    commands->setHorizontalSpacing(8);
    commands->setVerticalSpacing(3);
    commands->setColumnStretch(1, 1);
    m_command = commandLine(u"Command"_s, commands, 0, this);
    m_megatron = commandLine(u"Megatron-LM"_s, commands, 1, this);
    m_training = commandLine(u"Train it"_s, commands, 2, this);
    column->addLayout(commands);
    auto* buttons = new QHBoxLayout;
    m_pin = new QPushButton(u"Pin its t and p"_s, this);
    m_pin->setToolTip(
        u"Only ways with as many devices a layer and stages as the chosen one. A cell of the map does the "
        "same with a double click or Enter."_s);
    m_open = new QPushButton(u"Save as run…"_s, this);
    m_open->setToolTip(u"Simulates the chosen way's pipeline under its best schedule, adds it to a run file, and opens "
                       "that. Simulated only: ways with t > 1 can't be trained here."_s);
    m_train = new QPushButton(u"Train it…"_s, this);
    for (QPushButton* button : {m_pin, m_open, m_train}) buttons->addWidget(button);
    buttons->addStretch();
    column->addLayout(buttons);

    connect(m_pin, &QPushButton::clicked, this, [this] {
        if (m_answer && m_chosen >= 0) {
            const Parallelism& way = m_answer->shown[static_cast<std::size_t>(m_chosen)].way;
            pinDegrees(way.tensor, way.pipeline);
        }
    });
    connect(m_free, &QPushButton::clicked, this, [this] { setField("pin", {}); });
    connect(m_open, &QPushButton::clicked, this, [this] {
        if (m_answer && m_chosen >= 0) emit openAsked(m_chosen);
    });
    connect(m_train, &QPushButton::clicked, this, [this] { emit trainAsked(m_training->text()); });
    for (PlotWidget* picture : {m_time, m_memory}) {
        connect(picture, &PlotWidget::itemChosen, this, [this, picture](int item) { choose(picture->idOf(item)); });
        connect(picture, &PlotWidget::itemActivated, this, [this, picture](int item) {
            choose(picture->idOf(item));
            emit openAsked(m_chosen);
        });
    }
    connect(m_degrees, &PlotWidget::itemActivated, this, [this](int item) {
        const Parallelism& way = m_answer->all.candidates[static_cast<std::size_t>(m_degrees->idOf(item))].way;
        pinDegrees(way.tensor, way.pipeline);
    });
    connect(m_degrees, &PlotWidget::itemChosen, this, [this](int item) { m_said->setText(m_degrees->textOf(item)); });
    connect(m_table->selectionModel(), &QItemSelectionModel::currentRowChanged, this, [this](const QModelIndex& now) {
        if (now.isValid()) choose(now.siblingAtColumn(0).data(wayRole).toInt());
    });
    setError(u"computing…"_s);
}

Result<WaysQuestion> ChooseView::question() const
{
    SurveyValues values;
    for (const SurveyControl& control : m_fields) values[control.field.name] = control.value();
    STAGEWRIGHT_TRY(const SurveyQuestion asked, SurveyQuestion::read(chooseSurvey(), values));
    return WaysQuestion::of(asked);
}

void ChooseView::setField(const char* name, const QString& value)
{
    for (const SurveyControl& control : m_fields)
        if (control.field.name == name) control.set(value);
}

void ChooseView::pinDegrees(int tensor, int pipeline) { setField("pin", u"t=%1,p=%2"_s.arg(tensor).arg(pipeline)); }

void ChooseView::setAnswer(std::shared_ptr<const WaysAnswer> answer)
{
    m_answer = std::move(answer);
    m_setup->setText(qtText(m_answer->setup() + " " + m_answer->sentence()));
    Plot time = waysTime(*m_answer);
    time.saysChoice = false; // it is below the rows
    m_time->setPlot(std::move(time));
    m_memory->setPlot(waysMemory(*m_answer));
    m_degrees->setPlot(waysDegrees(*m_answer));
    showTable();
    choose(std::clamp(m_chosen, 0, static_cast<int>(m_answer->shown.size()) - 1));
}

void ChooseView::setError(const QString& text)
{
    m_answer.reset();
    m_chosen = -1;
    Plot plot;
    plot.nothing = text.toStdString();
    for (PlotWidget* picture : {m_time, m_memory, m_degrees}) picture->setPlot(plot);
    m_setup->setText({});
    m_rows->clear();
    showChoice();
}

void ChooseView::showTable()
{
    const SurveyTable table = waysTable(*m_answer);
    const TableText text = tableTextOf(table);
    m_rows->clear();
    m_rows->setHorizontalHeaderLabels(text.header);
    for (std::size_t row = 0; row < table.rows.size(); ++row) {
        QList<QStandardItem*> items;
        for (std::size_t i = 0; i < table.columns.size(); ++i) {
            auto* item = new QStandardItem(text.rows[static_cast<qsizetype>(row)][static_cast<qsizetype>(i)]);
            item->setData(sortValue(table.rows[row][i]), sortRole);
            item->setData(static_cast<int>(row), wayRole);
            const bool figure = table.columns[i].kind != ColumnKind::Text;
            item->setTextAlignment((figure ? Qt::AlignRight : Qt::AlignLeft) | Qt::AlignVCenter);
            items << item;
        }
        m_rows->appendRow(items);
    }
    for (std::size_t i = 0; i < table.columns.size(); ++i) {
        const bool figure = table.columns[i].kind != ColumnKind::Text;
        m_rows->horizontalHeaderItem(static_cast<int>(i))
            ->setTextAlignment((figure ? Qt::AlignRight : Qt::AlignLeft) | Qt::AlignVCenter);
        m_rows->horizontalHeaderItem(static_cast<int>(i))->setToolTip(qtText(table.columns[i].meaning));
    }
}

void ChooseView::choose(int way)
{
    if (!m_answer || way < 0 || way >= static_cast<int>(m_answer->shown.size())) return;
    m_chosen = way;
    showChoice();
}

void ChooseView::showChoice()
{
    const bool any = m_answer && m_chosen >= 0;
    for (PlotWidget* picture : {m_time, m_memory}) picture->setChosen(any ? picture->itemOf(m_chosen) : -1);
    for (QPushButton* button : {m_pin, m_open}) button->setEnabled(any);
    m_said->setText(any ? qtText(m_answer->text(static_cast<std::size_t>(m_chosen))) : QString());
    m_command->setText(any ? qtText(m_answer->command(static_cast<std::size_t>(m_chosen))) : QString());
    m_megatron->setText(any ? qtText(megatronArguments(m_answer->question.layout.model,
                                                       m_answer->shown[static_cast<std::size_t>(m_chosen)].way))
                            : QString());
    QString training, whyNone;
    if (any) {
        const auto way = static_cast<std::size_t>(m_chosen);
        const auto& simulated = m_answer->simulated[way];
        std::string whyNot;
        training = qtText(trainingCommand(m_answer->question.layout.model,
                                          layoutOf(m_answer->question.layout.model, m_answer->shown[way].way),
                                          simulated ? simulated->schedule : "1f1b", whyNot));
        whyNone = qtText(whyNot);
        if (!whyNot.empty()) training = u"simulated only: %1"_s.arg(whyNone);
    }
    m_training->setText(training);
    m_train->setEnabled(any && whyNone.isEmpty());
    m_train->setToolTip(whyNone.isEmpty() ? u"Opens the recording dialog with the chosen way: a recording proves it"_s
                                          : u"Simulated only: %1"_s.arg(whyNone));
    m_training->setCursorPosition(0);
    m_command->setCursorPosition(0);
    m_megatron->setCursorPosition(0);
    if (!any) return;
    const auto* sorted = m_table->model();
    const QSignalBlocker quiet(m_table->selectionModel());
    for (int row = 0; row < sorted->rowCount(); ++row)
        if (sorted->index(row, 0).data(wayRole).toInt() == m_chosen) m_table->selectRow(row);
    m_table->viewport()->update();
}

QString ChooseView::said() const { return m_said->text(); }
QString ChooseView::command() const { return m_command->text(); }

Plot ChooseView::plot() const
{
    return m_answer ? waysWhole(m_time->plot(), m_memory->plot(), m_degrees->plot()) : m_time->plot();
}

void ChooseView::setTheme(const Theme& theme)
{
    for (PlotWidget* picture : {m_time, m_memory, m_degrees}) picture->setTheme(theme);
}

void ChooseView::restore()
{
    const QSettings settings;
    for (const SurveyControl& control : m_fields) {
        const QString key = u"explore/choose/"_s + qtText(control.field.name);
        if (settings.contains(key)) control.set(settings.value(key).toString());
    }
}

void ChooseView::hideEvent(QHideEvent* event)
{
    QSettings settings;
    for (const SurveyControl& control : m_fields)
        settings.setValue(u"explore/choose/"_s + qtText(control.field.name), qtText(control.value()));
    QWidget::hideEvent(event);
}

} // namespace stagewright
