#include "widgets/runs/runs_panel.h"

#include <algorithm>

#include <QApplication>
#include <QKeyEvent>
#include <QLabel>
#include <QLineEdit>
#include <QPainter>
#include <QSignalBlocker>
#include <QVBoxLayout>

#include "widgets/literals.h"
#include "widgets/style.h"

namespace stagewright {

void RunDelegate::paint(QPainter* painter, const QStyleOptionViewItem& option, const QModelIndex& index) const
{
    const Theme& t = *m_theme;
    painter->save();
    painter->setRenderHint(QPainter::Antialiasing);
    QRectF box = QRectF(option.rect).adjusted(0, 1, 0, -1);
    if (index.data(RunsModel::IsFileRole).toBool()) {
        box.adjust(14, 0, 0, 0);
        const QFont font = fontOf(FontRole::Strong);
        painter->setFont(font);
        painter->setPen(t.text);
        const QString detail = index.data(RunsModel::DetailRole).toString();
        const double detailWidth = QFontMetricsF(fontOf(FontRole::Small)).horizontalAdvance(detail);
        const QRectF text = box.adjusted(0, 0, -detailWidth - 14, 0);
        painter->drawText(text, Qt::AlignVCenter | Qt::AlignLeft,
                          QFontMetricsF(font).elidedText(index.data().toString(), Qt::ElideMiddle, text.width()));
        painter->setFont(fontOf(FontRole::Small));
        painter->setPen(index.data(RunsModel::ErrorRole).toString().isEmpty() ? t.faint : t.critical);
        painter->drawText(box.adjusted(0, 0, -8, 0), Qt::AlignVCenter | Qt::AlignRight, detail);
        painter->restore();
        return;
    }
    const bool selected = option.state.testFlag(QStyle::State_Selected);
    const bool hovered = option.state.testFlag(QStyle::State_MouseOver);
    const QRectF row =
        QRectF(6, box.top(), option.widget != nullptr ? option.widget->width() - 12 : box.width(), box.height());
    if (selected || hovered) {
        QColor fill = selected ? t.accent : t.text;
        fill.setAlphaF(selected ? (t.dark ? 0.26F : 0.12F) : 0.05F);
        painter->setPen(Qt::NoPen);
        painter->setBrush(fill);
        painter->drawRoundedRect(row, 5, 5);
        if (selected && option.state.testFlag(QStyle::State_HasFocus)) {
            painter->setPen(QPen(t.accent, 1));
            painter->setBrush(Qt::NoBrush);
            painter->drawRoundedRect(row.adjusted(0.5, 0.5, -0.5, -0.5), 5, 5);
        }
    }
    const QStringList figures = index.data(RunsModel::FigureRole).toString().split(u'\n');
    const QRectF inner = row.adjusted(12, 6, -9, -6);
    const QFont strong = fontOf(FontRole::Body);
    const QFont small = fontOf(FontRole::Small);
    double left = inner.left();
    const QString mark = index.data(RunsModel::MarkRole).toString();
    if (!mark.isEmpty()) {
        const QRectF badge(left, inner.top() + 1, 15, 15);
        painter->setPen(Qt::NoPen);
        const bool compared = selected && mark != "A"_L1; // the run of the panel and the curves
        painter->setBrush(compared ? t.accent : t.secondary);
        painter->drawRoundedRect(badge, 3, 3);
        painter->setFont(fontOf(FontRole::Small));
        painter->setPen(compared ? t.onAccent : t.panel);
        painter->drawText(badge, Qt::AlignCenter, mark);
        left += 21;
    }
    double figureWidth = 0;
    painter->setPen(t.text);
    painter->setFont(strong);
    for (const QString& figure : figures)
        figureWidth = std::max(figureWidth, QFontMetricsF(strong).horizontalAdvance(figure));
    if (!figures.isEmpty())
        painter->drawText(QRectF(inner.left(), inner.top(), inner.width(), 16), Qt::AlignRight | Qt::AlignVCenter,
                          figures.value(0));
    const QRectF nameRect(left, inner.top(), inner.right() - left - figureWidth - 8, 16);
    painter->setFont(selected ? fontOf(FontRole::Strong) : strong);
    painter->drawText(
        nameRect, Qt::AlignLeft | Qt::AlignVCenter,
        QFontMetricsF(painter->font()).elidedText(index.data().toString(), Qt::ElideRight, nameRect.width()));
    painter->setFont(small);
    painter->setPen(t.secondary);
    painter->drawText(QRectF(inner.left(), inner.bottom() - 15, inner.width(), 15), Qt::AlignRight | Qt::AlignVCenter,
                      figures.value(1));
    const QRectF detailRect(inner.left(), inner.bottom() - 15, inner.width() - figureWidth - 8, 15);
    painter->drawText(detailRect, Qt::AlignLeft | Qt::AlignVCenter,
                      QFontMetricsF(small).elidedText(index.data(RunsModel::DetailRole).toString(), Qt::ElideRight,
                                                      detailRect.width()));
    painter->restore();
}

QSize RunDelegate::sizeHint(const QStyleOptionViewItem&, const QModelIndex& index) const
{
    return index.data(RunsModel::IsFileRole).toBool() ? QSize(180, 28) : QSize(180, 48);
}

RunsPanel::RunsPanel(RunsModel* model, QWidget* parent) : QWidget(parent), m_model(model)
{
    setObjectName(u"panel"_s);
    setAttribute(Qt::WA_StyledBackground);
    auto* layout = new QVBoxLayout(this);
    layout->setContentsMargins(0, 0, 0, 0);
    layout->setSpacing(0);
    auto* title = makeLabel(u"Runs"_s, "title", this);
    auto* head = new QVBoxLayout;
    head->setContentsMargins(14, 12, 14, 5);
    head->setSpacing(6);
    head->addWidget(title);
    layout->addLayout(head);
    m_empty = makeLabel(u"No file is open. Open one (Ctrl+O) or record a run (Ctrl+R)."_s, "faint", this);
    m_empty->setWordWrap(true);
    head->addWidget(m_empty);
    m_find = new QLineEdit(this);
    m_find->setObjectName(u"findRun"_s);
    m_find->setPlaceholderText(u"Find a run"_s);
    m_find->setAccessibleName(u"Find a run"_s);
    m_find->setToolTip(u"Words from a run's name, schedule or clock. Down: go to the list. Return: open the first "
                       "match. Esc: back to the timeline."_s);
    m_find->setClearButtonEnabled(true);
    m_find->setAcceptDrops(false); // the window handles file drops
    m_find->installEventFilter(this);
    head->addWidget(m_find);
    connect(m_find, &QLineEdit::textChanged, this, &RunsPanel::sift);
    m_tree = new QTreeView(this);
    m_tree->setAccessibleName(u"Runs"_s);
    m_tree->setModel(model);
    m_delegate = new RunDelegate(this);
    m_tree->setItemDelegate(m_delegate);
    m_tree->setHeaderHidden(true);
    for (int column = 1; column < RunsModel::ColumnCount; ++column) m_tree->hideColumn(column);
    m_tree->setRootIsDecorated(false);
    m_tree->setIndentation(14);
    m_tree->setItemsExpandable(true);
    m_tree->setMouseTracking(true);
    m_tree->setUniformRowHeights(false);
    m_tree->setHorizontalScrollBarPolicy(Qt::ScrollBarAlwaysOff);
    m_tree->setContextMenuPolicy(Qt::CustomContextMenu);
    m_tree->setStyleSheet(u"QTreeView::branch{background:transparent;border-image:none;image:none;}"
                          "QTreeView::item:selected,QTreeView::branch:selected{background:transparent;}"_s);
    layout->addWidget(m_tree, 1);
    makeCopyable(m_tree, [this] { return table(); });

    connect(m_tree->selectionModel(), &QItemSelectionModel::currentChanged, this, [this](const QModelIndex& now) {
        const RunRef ref = m_model->refAt(now);
        if (!ref.valid()) return;
        if (QApplication::keyboardModifiers().testFlag(Qt::ControlModifier) && m_tree->underMouse())
            emit compareAsked(ref);
        else
            emit runChosen(ref);
    });
    m_tree->viewport()->installEventFilter(this);
    connect(m_tree, &QTreeView::clicked, this, [this](const QModelIndex& index) {
        const RunRef ref = m_model->refAt(index);
        if (ref.valid() && m_pressedAt == index && QApplication::keyboardModifiers() == Qt::NoModifier)
            emit runChosenAgain(ref);
    });
    connect(m_tree, &QTreeView::activated, this, [this](const QModelIndex& index) {
        const RunRef ref = m_model->refAt(index);
        if (ref.valid()) emit runChosen(ref);
    });
    connect(m_tree, &QTreeView::customContextMenuRequested, this, [this](const QPoint& at) {
        const QModelIndex index = m_tree->indexAt(at);
        emit menuAsked(m_tree->viewport()->mapToGlobal(at), m_model->refAt(index),
                       index.data(RunsModel::RefFileRole).toString());
    });
    auto changed = [this] {
        m_empty->setVisible(m_model->rowCount() == 0);
        const bool wasHidden = m_find->isHidden();
        m_find->setVisible(m_model->runCount() > 1);
        return m_find->isHidden() != wasHidden && !m_find->text().isEmpty(); // the words count now, or no longer
    };
    connect(m_model, &QAbstractItemModel::rowsInserted, this,
            [this, changed](const QModelIndex& parent, int first, int last) {
                if (changed()) return sift();
                siftRows(parent, first, last);
            });
    connect(m_model, &QAbstractItemModel::rowsRemoved, this, [this, changed] {
        if (changed()) sift();
    });
    changed();
    sift();
}

void RunsPanel::sift()
{
    if (m_model->rowCount() > 0) siftRows({}, 0, m_model->rowCount() - 1);
}

// Those rows, and those in them: shows them open, and hides what isn't looked for.
void RunsPanel::siftRows(const QModelIndex& parent, int first, int last)
{
    const QStringList words = m_find->isHidden() ? QStringList() : m_find->text().split(u' ', Qt::SkipEmptyParts);
    for (int row = first; row <= last; ++row) {
        const QModelIndex index = m_model->index(row, 0, parent);
        if (!parent.isValid()) {
            m_tree->expand(index);
            m_tree->setRowHidden(row, {}, index.data(RunsModel::HiddenRole).toBool());
            if (const int runs = m_model->rowCount(index); runs > 0) siftRows(index, 0, runs - 1);
            continue;
        }
        const auto isIn = [&, text = QString()](const QString& word) mutable {
            if (text.isEmpty())
                text = index.data().toString() + u' ' + index.siblingAtColumn(RunsModel::Schedule).data().toString() +
                       u' ' + index.data(RunsModel::DetailRole).toString();
            return text.contains(word, Qt::CaseInsensitive);
        };
        m_tree->setRowHidden(row, parent, !std::all_of(words.begin(), words.end(), isIn));
    }
    if (parent.isValid()) m_tree->expand(parent); // an empty one can't be opened
}

bool RunsPanel::eventFilter(QObject* watched, QEvent* event)
{
    if (watched == m_tree->viewport() && event->type() == QEvent::MouseButtonPress)
        m_pressedAt = m_tree->currentIndex();
    if (watched != m_find || event->type() != QEvent::KeyPress) return QWidget::eventFilter(watched, event);
    const int key = static_cast<QKeyEvent*>(event)->key();
    const bool enters = key == Qt::Key_Return || key == Qt::Key_Enter;
    if (key == Qt::Key_Escape) {
        m_find->clear();
        emit left();
        return true;
    }
    if (!enters && key != Qt::Key_Down) return false;
    for (int f = 0; f < m_model->rowCount(); ++f)
        for (int r = 0; r < m_model->rowCount(m_model->index(f, 0)); ++r)
            if (!m_tree->isRowHidden(r, m_model->index(f, 0))) {
                const QModelIndex run = m_model->index(r, 0, m_model->index(f, 0));
                m_tree->setFocus();
                m_tree->setCurrentIndex(run);
                if (enters) emit runChosen(m_model->refAt(run));
                return true;
            }
    return true;
}

TableText RunsPanel::table() const
{
    TableText table = tableOf(*m_model); // with the columns that the list folds into one
    table.title = u"Runs"_s;
    return table;
}

void RunsPanel::setTheme(const Theme& theme)
{
    m_delegate->setTheme(theme);
    m_tree->viewport()->update();
}

void RunsPanel::setCurrent(const RunRef& ref)
{
    const QModelIndex index = m_model->indexOf(ref);
    const QSignalBlocker blocker(m_tree->selectionModel());
    m_tree->setCurrentIndex(index);
    m_tree->selectionModel()->select(index, QItemSelectionModel::ClearAndSelect);
    if (index.isValid()) m_tree->scrollTo(index);
    m_tree->viewport()->update();
}

void RunsPanel::addBelow(QWidget* widget)
{
    m_below = widget;
    layout()->addWidget(widget);
}

bool RunsPanel::hasBelow() const { return m_below != nullptr && !m_below->isHidden(); }

RunRef RunsPanel::current() const { return m_model->refAt(m_tree->currentIndex()); }

} // namespace stagewright
