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

#include "widgets/numbers.h"
#include "widgets/style.h"
#include "widgets/table_copy.h"

namespace stagewright {

SqlConsole::SqlConsole(QWidget* parent)
    : QWidget(parent), m_editor(new QueryEditor(this)), m_sorted(new QSortFilterProxyModel(this)),
      m_table(new QTableView(this))
{
    setObjectName(QStringLiteral("panel"));
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
    m_run = button(tr("Run"), tr("Runs the query (Ctrl+Enter)"));
    m_run->setObjectName(QStringLiteral("primary"));
    m_cancel = button(tr("Cancel"), tr("Stops the running query"));
    auto* queries = button(tr("Queries"), tr("Built-in queries, your own, and those saved in this file"));
    m_queries = new QMenu(queries);
    m_queries->setToolTipsVisible(true);
    queries->setMenu(m_queries);
    auto* save = button(tr("Save…"), tr("Saves this query under a name, in the settings or in the file"));
    m_mark = button(tr("Show on timeline"), tr("Marks every row that names a span, an op or a time"));
    m_export = button(tr("Export…"), tr("Writes the rows to a CSV or Markdown file"));
    buttons->addStretch(1);
    m_busy = new QProgressBar(this);
    m_busy->setRange(0, 0);
    m_busy->setTextVisible(false);
    m_busy->setFixedWidth(90);
    m_busy->setAccessibleName(tr("The query is running"));
    buttons->addWidget(m_busy);
    layout->addLayout(buttons);

    m_sorted->setSourceModel(&m_model);
    m_sorted->setSortRole(QueryModel::SortRole);
    m_table->setObjectName(QStringLiteral("queryTable"));
    m_table->setAccessibleName(tr("Rows of the query"));
    m_table->setToolTip(tr("A row that names a span, an op or a time selects it on the timeline. Ctrl+C copies as CSV, "
                           "Ctrl+Shift+C as Markdown."));
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
        m_said->setText(tr("Running for %1 s…")
                            .arg(static_cast<double>(QDateTime::currentMSecsSinceEpoch() - m_began) / 1000, 0, 'f', 1));
    });
    const auto ask = [this] {
        if (m_editor->toPlainText().trimmed().isEmpty())
            setSaid(tr("Write one SELECT, or choose a query."));
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
    setSaid(tr("Tables: spans, memory, edges, runs, steps, metrics, notes. Ctrl+Space completes their columns."));
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
        setSaid(tr("Running…"));
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
    QString text = truncated ? tr("%1, in %2 s. Use LIMIT and OFFSET for the others.")
                                   .arg(countText(count, tr("The first row"), tr("The first %L1 rows")))
                                   .arg(static_cast<double>(milliseconds) / 1000, 0, 'f', 2)
                             : countText(count, tr("1 row"), tr("%L1 rows")) +
                                   tr(", in %1 s").arg(static_cast<double>(milliseconds) / 1000, 0, 'f', 2);
    setSaid(text);
}

void SqlConsole::showFault(const QString& message, const QString& remedy)
{
    QString text = message;
    if (!text.isEmpty()) text[0] = text[0].toUpper();
    m_said->setText(remedy.isEmpty() ? text : text + QStringLiteral(". ") + remedy);
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
    m_mark->setToolTip(why.isEmpty() ? tr("Marks every row that names a span, an op or a time") : why);
}

} // namespace stagewright
