#include "widgets/search/search_panel.h"

#include <QEvent>
#include <QHBoxLayout>
#include <QHeaderView>
#include <QLabel>
#include <QProgressBar>
#include <QTableView>
#include <QVBoxLayout>

#include "widgets/literals.h"
#include "widgets/style.h"
#include "widgets/table_copy.h"

namespace stagewright {

SearchPanel::SearchPanel(QWidget* parent)
    : QWidget(parent), m_count(makeLabel({}, "secondary", this)), m_busy(new QProgressBar(this)),
      m_table(new QTableView(this))
{
    setObjectName(u"panel"_s);
    setAttribute(Qt::WA_StyledBackground);
    auto* layout = new QVBoxLayout(this);
    layout->setContentsMargins(0, 0, 0, 0);
    layout->setSpacing(0);
    auto* line = new QHBoxLayout;
    line->setContentsMargins(12, 6, 12, 6);
    m_busy->setRange(0, 0);
    m_busy->setTextVisible(false);
    m_busy->setFixedWidth(90);
    m_busy->setAccessibleName(u"Searching"_s);
    line->addWidget(m_count, 1);
    line->addWidget(m_busy);
    layout->addLayout(line);
    m_table->setObjectName(u"searchTable"_s);
    m_table->setAccessibleName(u"Search results"_s);
    m_table->setToolTip(u"Choosing a row goes to its op; Ctrl+C copies the table as CSV, Ctrl+Shift+C as Markdown"_s);
    m_table->setModel(&m_model);
    m_table->setSelectionBehavior(QAbstractItemView::SelectRows);
    m_table->setSelectionMode(QAbstractItemView::SingleSelection);
    m_table->setEditTriggers(QAbstractItemView::NoEditTriggers);
    m_table->setShowGrid(false);
    m_table->setTabKeyNavigation(false);
    m_table->verticalHeader()->hide();
    m_table->verticalHeader()->setDefaultSectionSize(22);
    m_table->verticalHeader()->setSectionResizeMode(QHeaderView::Fixed); // a million rows are not measured
    m_table->horizontalHeader()->setHighlightSections(false);
    m_table->horizontalHeader()->setDefaultSectionSize(104);
    m_table->installEventFilter(this);
    makeCopyable(m_table);
    layout->addWidget(m_table, 1);
    connect(m_table->selectionModel(), &QItemSelectionModel::currentRowChanged, this, [this](const QModelIndex& now) {
        if (now.isValid()) emit chosen(now.row());
    });
    connect(m_table, &QTableView::activated, this, [this](const QModelIndex& at) { emit chosen(at.row()); });
    setSearching(false);
    m_count->setText(u"Type into the search field: rank:2 mb:5 B, or >2ms"_s);
}

void SearchPanel::setHits(std::shared_ptr<const TimelinePanel> panel,
                          std::shared_ptr<const std::vector<SearchHit>> hits, std::vector<Note> notes,
                          const QString& query)
{
    const int count = hits ? static_cast<int>(hits->size()) : 0;
    bool noted = false;
    for (int i = 0; hits && i < count && !noted; ++i) noted = (*hits)[static_cast<std::size_t>(i)].note >= 0;
    m_model.setHits(std::move(panel), std::move(hits), std::move(notes));
    m_table->setColumnHidden(SearchModel::NoteText, !noted);
    m_count->setText(query.isEmpty() ? u"Type into the search field: rank:2 mb:5 B, or >2ms"_s
                                     : u"%L1 found"_s.arg(count) + u" for “%1”"_s.arg(query));
}

void SearchPanel::setSearching(bool searching) { m_busy->setVisible(searching); }

void SearchPanel::setCurrentRow(int row)
{
    const QSignalBlocker quiet(m_table->selectionModel());
    m_table->setCurrentIndex(m_model.index(row, 0));
    m_table->scrollTo(m_model.index(row, 0));
    m_table->viewport()->update();
}

// The view makes its first row current when it gets the focus, although nobody chose it.
bool SearchPanel::eventFilter(QObject* watched, QEvent* event)
{
    if (watched == m_table && event->type() == QEvent::FocusIn && !m_table->currentIndex().isValid() &&
        m_model.rowCount() > 0)
        setCurrentRow(0);
    return QWidget::eventFilter(watched, event);
}

QString SearchPanel::countText() const { return m_count->text(); }

} // namespace stagewright
