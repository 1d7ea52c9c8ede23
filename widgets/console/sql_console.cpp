#include "widgets/console/sql_console.h"

#include <QDateTime>
#include <QHBoxLayout>
#include <QHeaderView>
#include <QLabel>
#include <QMenu>
#include <QProgressBar>
#include <QPushButton>
#include <QSortFilterProxyModel>
#include <QTableView>
#include <QTimer>
#include <QVBoxLayout>

#include "widgets/literals.h"
#include "widgets/numbers.h"
#include "widgets/sentence.h"
#include "widgets/style.h"
#include "widgets/table_copy.h"

namespace stagewright {

SqlConsole::SqlConsole(QWidget* parent)
    : QWidget(parent), m_editor(new QueryEditor(this)), m_sorted(new QSortFilterProxyModel(this)),
      m_table(new QTableView(this))
{
    setObjectName(u"panel"_s);
    setAttribute(Qt::WA_StyledBackground);
    auto* layout = new QVBoxLayout(this);
    layout->setContentsMargins(10, 8, 10, 6);
    layout->setSpacing(6);
    m_editor->setMinimumHeight(44);
    m_editor->setMaximumHeight(editorHeight);
    layout->addWidget(m_editor);

    auto* buttons = new QHBoxLayout;
    buttons->setSpacing(6);
    const auto button = [&](const QString& text, const QString& tooltip) {
        auto* made = new QPushButton(text, this);
        made->setToolTip(tooltip);
        buttons->addWidget(made);
        return made;
    };
    m_run = button(u"Run"_s, u"Runs the query (Ctrl+Enter)"_s);
    m_run->setObjectName(u"primary"_s);
    m_cancel = button(u"Cancel"_s, u"Stops the running query"_s);
    auto* queries = button(u"Queries"_s, u"Built-in queries, your own, and those saved in this file"_s);
    m_queries = new QMenu(queries);
    m_queries->setToolTipsVisible(true);
    queries->setMenu(m_queries);
    auto* save = button(u"Save…"_s, u"Saves this query under a name, in the settings or in the file"_s);
    m_mark = button(u"Show on timeline"_s, u"Marks every row that names a span, an op or a time"_s);
    m_export = button(u"Export…"_s, u"Writes the rows to a CSV or Markdown file"_s);
    buttons->addStretch(1);
    m_busy = new QProgressBar(this);
    m_busy->setRange(0, 0);
    m_busy->setTextVisible(false);
    m_busy->setFixedWidth(90);
    m_busy->setAccessibleName(u"The query is running"_s);
    buttons->addWidget(m_busy);
    layout->addLayout(buttons);

    m_sorted->setSourceModel(&m_model);
    m_sorted->setSortRole(QueryModel::SortRole);
    m_table->setObjectName(u"queryTable"_s);
    m_table->setAccessibleName(u"Rows of the query"_s);
    m_table->setToolTip(u"A row that names a span, an op or a time selects it on the timeline. Ctrl+C copies as CSV, "
                        "Ctrl+Shift+C as Markdown."_s);
    m_table->setModel(m_sorted);
    m_table->setSortingEnabled(true);
    m_table->setSelectionBehavior(QAbstractItemView::SelectRows);
    m_table->setEditTriggers(QAbstractItemView::NoEditTriggers);
    m_table->setShowGrid(false);
    m_table->setTabKeyNavigation(false);
    m_table->verticalHeader()->setDefaultSectionSize(22);
    m_table->verticalHeader()->hide();
    m_table->horizontalHeader()->setHighlightSections(false);
    m_table->setMinimumHeight(60);
    // it takes the available space and no more: the timeline stays visible
    m_table->setSizePolicy(QSizePolicy::Expanding, QSizePolicy::Ignored);
    makeCopyable(m_table);
    layout->addWidget(m_table, 1);
    m_said = makeLabel({}, "secondary", this, true);
    m_said->setWordWrap(true);
    layout->addWidget(m_said);

    m_clock = new QTimer(this);
    m_clock->setInterval(200);
    connect(m_clock, &QTimer::timeout, this, [this] {
        m_said->setText(u"Running for %1 s…"_s.arg(
            static_cast<double>(QDateTime::currentMSecsSinceEpoch() - m_began) / 1000, 0, 'f', 1));
    });
    const auto ask = [this] {
        if (m_editor->toPlainText().trimmed().isEmpty())
            setSaid(u"Write one SELECT, or choose a query."_s);
        else
            emit runAsked(m_editor->toPlainText());
    };
    connect(m_run, &QPushButton::clicked, this, ask);
    connect(m_editor, &QueryEditor::runAsked, this, ask);
    connect(m_cancel, &QPushButton::clicked, this, &SqlConsole::cancelAsked);
    connect(save, &QPushButton::clicked, this, [this] { emit saveAsked(m_editor->toPlainText()); });
    connect(m_mark, &QPushButton::clicked, this, &SqlConsole::showOnTimelineAsked);
    connect(m_export, &QPushButton::clicked, this, &SqlConsole::exportAsked);
    connect(m_table->selectionModel(), &QItemSelectionModel::currentRowChanged, this, [this] {
        if (currentRow() >= 0) emit rowChosen(currentRow());
    });
    connect(m_table, &QTableView::clicked, this, [this] { emit rowChosen(currentRow()); });
    setRunning(false);
    setShowsOnTimeline(false, {});
    m_export->setEnabled(false);
    setSaid(u"Tables: spans, memory, edges, runs, steps, metrics, notes. Ctrl+Space completes their columns."_s);
}

void SqlConsole::setQuery(const QString& sql)
{
    m_editor->setPlainText(sql);
    m_editor->moveCursor(QTextCursor::End);
}

void SqlConsole::setRunning(bool running)
{
    m_running = running;
    m_run->setEnabled(!running);
    m_cancel->setEnabled(running);
    m_busy->setVisible(running);
    if (running) {
        m_began = QDateTime::currentMSecsSinceEpoch();
        m_clock->start();
        setSaid(u"Running…"_s);
    } else {
        m_clock->stop();
    }
}

void SqlConsole::showRows(QueryRows rows, qint64 milliseconds)
{
    const int count = static_cast<int>(rows.rows.size());
    const bool truncated = rows.truncated;
    m_table->sortByColumn(-1, Qt::AscendingOrder); // as the query has them
    m_model.setRows(std::move(rows));
    m_table->resizeColumnsToContents();
    for (int column = 0; column < m_model.columnCount(); ++column)
        m_table->setColumnWidth(column, std::min(m_table->columnWidth(column) + 10, 320));
    m_export->setEnabled(m_model.columnCount() > 0);
    QString text = truncated ? u"%1, in %2 s. Use LIMIT and OFFSET for the others."_s
                                   .arg(countText(count, u"The first row"_s, u"The first %L1 rows"_s))
                                   .arg(static_cast<double>(milliseconds) / 1000, 0, 'f', 2)
                             : countText(count, u"1 row"_s, u"%L1 rows"_s) +
                                   u", in %1 s"_s.arg(static_cast<double>(milliseconds) / 1000, 0, 'f', 2);
    setSaid(text);
}

void SqlConsole::showFault(const QString& message, const QString& remedy)
{
    m_model.setRows({}); // they are not of this query
    m_export->setEnabled(false);
    const QString text = sentence(message);
    m_said->setText(remedy.isEmpty() ? text : text + u". "_s + remedy);
    setRole(m_said, "worse");
}

void SqlConsole::setSaid(const QString& text)
{
    m_said->setText(text);
    setRole(m_said, "secondary");
}

int SqlConsole::missingHeight() const
{
    constexpr int rows = 10;
    layout()->activate();
    const int wanted = rows * m_table->verticalHeader()->defaultSectionSize() +
                       m_table->horizontalHeader()->sizeHint().height() + 2 * m_table->frameWidth() + 2;
    return std::max(0, wanted - m_table->height());
}

QString SqlConsole::status() const { return m_said->text(); }

int SqlConsole::currentRow() const
{
    const QModelIndex at = m_sorted->mapToSource(m_table->currentIndex());
    return at.isValid() ? at.row() : -1;
}

void SqlConsole::setShowsOnTimeline(bool can, const QString& why)
{
    m_mark->setEnabled(can);
    m_mark->setToolTip(why.isEmpty() ? u"Marks every row that names a span, an op or a time"_s : why);
}

} // namespace stagewright
