#include "widgets/edit/op_tray.h"

#include <algorithm>

#include <QApplication>
#include <QEvent>
#include <QHBoxLayout>
#include <QItemSelectionModel>
#include <QKeyEvent>
#include <QLabel>
#include <QListView>
#include <QMouseEvent>
#include <QPainter>
#include <QPushButton>
#include <QStyledItemDelegate>
#include <QVBoxLayout>

#include "schedules/model/kinds.h"
#include "widgets/literals.h"
#include "widgets/numbers.h"
#include "widgets/style.h"

namespace stagewright {
namespace {

constexpr int chipWidth = 62, chipHeight = 26;

// An op as on the canvas; an outline until all its inputs are placed.
class ChipDelegate : public QStyledItemDelegate {
public:
    ChipDelegate(const Theme* const* theme, QObject* parent) : QStyledItemDelegate(parent), m_theme(theme) {}
    QSize sizeHint(const QStyleOptionViewItem&, const QModelIndex&) const override { return {chipWidth, chipHeight}; }
    void paint(QPainter* painter, const QStyleOptionViewItem& option, const QModelIndex& index) const override
    {
        const auto* model = static_cast<const OpTrayModel*>(index.model());
        const TrayOp& entry = model->ops()[static_cast<std::size_t>(index.row())];
        const Theme& theme = **m_theme;
        painter->save();
        painter->setRenderHint(QPainter::Antialiasing);
        const QRectF chip = QRectF(option.rect).adjusted(2, 2, -2, -2);
        const Fill& fill = theme.of(entry.op.kind);
        painter->setPen(QPen(fill.edge, entry.ready ? 1 : 1.5, entry.ready ? Qt::SolidLine : Qt::DashLine));
        painter->setBrush(entry.ready ? QBrush(fill.fill) : QBrush(Qt::NoBrush));
        painter->drawRoundedRect(chip.adjusted(0.5, 0.5, -0.5, -0.5), 3, 3);
        painter->setFont(fontOf(FontRole::Label));
        painter->setPen(entry.ready ? fill.label : theme.text);
        painter->drawText(chip, Qt::AlignCenter, index.data().toString());
        if ((option.state & QStyle::State_Selected) != 0) {
            painter->setBrush(Qt::NoBrush);
            painter->setPen(QPen(theme.text, 2));
            painter->drawRoundedRect(chip, 3, 3);
        }
        if ((option.state & QStyle::State_HasFocus) != 0) {
            painter->setBrush(Qt::NoBrush);
            painter->setPen(QPen(theme.accent, 1, Qt::DotLine));
            painter->drawRoundedRect(chip.adjusted(-1.5, -1.5, 1.5, 1.5), 4, 4);
        }
        painter->restore();
    }

private:
    const Theme* const* m_theme;
};

} // namespace

void OpTrayModel::setOps(std::vector<TrayOp> ops, const Theme& theme)
{
    beginResetModel();
    m_ops = std::move(ops);
    m_theme = &theme;
    endResetModel();
}

int OpTrayModel::rowCount(const QModelIndex& parent) const
{
    return parent.isValid() ? 0 : static_cast<int>(m_ops.size());
}

QVariant OpTrayModel::data(const QModelIndex& index, int role) const
{
    if (!index.isValid() || index.row() >= rowCount()) return {};
    const TrayOp& entry = m_ops[static_cast<std::size_t>(index.row())];
    const QString text = QString::fromStdString(toText(entry.op));
    if (role == Qt::DisplayRole) return text;
    const std::string_view kind = ruleOf(entry.op.kind).title;
    if (role == Qt::ToolTipRole || role == Qt::AccessibleDescriptionRole)
        return u"%1 of stage %2, microbatch %3, for rank %4; %5"_s
            .arg(QString::fromUtf8(kind.data(), static_cast<qsizetype>(kind.size())))
            .arg(entry.op.stage)
            .arg(entry.op.microbatch)
            .arg(entry.rank)
            .arg(entry.ready ? u"ready to place"_s : u"its inputs are not placed yet"_s);
    return {};
}

OpTray::OpTray(QWidget* parent) : QWidget(parent)
{
    auto* layout = new QVBoxLayout(this);
    layout->setContentsMargins(14, 8, 14, 8);
    layout->setSpacing(5);
    auto* head = new QHBoxLayout;
    head->setSpacing(6);
    m_title = makeLabel({}, "title", this);
    head->addWidget(m_title);
    head->addStretch(1);
    m_place = new QPushButton(u"Place"_s, this);
    m_place->setToolTip(u"Puts the selected ops where they can start earliest (Return)."_s);
    m_all = new QPushButton(u"Place all"_s, this);
    m_all->setToolTip(
        u"Puts every remaining op where it can start earliest, backwards before forwards where both can."_s);
    for (QPushButton* button : {m_place, m_all}) {
        button->setAutoDefault(false);
        head->addWidget(button);
    }
    layout->addLayout(head);
    m_model = new OpTrayModel(this);
    m_list = new QListView(this);
    m_list->setObjectName(u"boxed"_s);
    m_list->setAccessibleName(u"Unplaced ops"_s);
    m_list->setModel(m_model);
    m_list->setFlow(QListView::LeftToRight);
    m_list->setWrapping(true);
    m_list->setResizeMode(QListView::Adjust);
    m_list->setUniformItemSizes(true);
    m_list->setLayoutMode(QListView::Batched);
    m_list->setSelectionMode(QAbstractItemView::ExtendedSelection);
    m_list->setItemDelegate(new ChipDelegate(&m_theme, m_list));
    m_list->setMinimumHeight(chipHeight + 8);
    m_list->setToolTip(u"Drag an op to its rank, or place it with Return."_s);
    m_list->installEventFilter(this);
    m_list->viewport()->installEventFilter(this);
    layout->addWidget(m_list, 1);
    auto place = [this] {
        if (const auto ops = chosen(); !ops.empty()) emit placeAsked(ops);
    };
    connect(m_list, &QListView::activated, this, place);
    connect(m_place, &QPushButton::clicked, this, place);
    connect(m_all, &QPushButton::clicked, this, &OpTray::placeAllAsked);
    connect(m_list->selectionModel(), &QItemSelectionModel::selectionChanged, this,
            [this] { m_place->setEnabled(m_list->selectionModel()->hasSelection()); });
}

void OpTray::setOps(std::vector<TrayOp> ops)
{
    const int row = std::max(0, m_list->currentIndex().row());
    m_model->setOps(std::move(ops), *m_theme);
    const int count = m_model->rowCount();
    m_title->setText(countText(count, u"1 op to place"_s, u"%L1 ops to place"_s));
    if (count > 0) {
        // the ready op nearest to where one was taken; the others stay where they are
        int near = std::min(row, count - 1);
        for (int i = 0; i < count; ++i)
            if (m_model->ops()[static_cast<std::size_t>(i)].ready &&
                (!m_model->ops()[static_cast<std::size_t>(near)].ready || std::abs(i - row) < std::abs(near - row)))
                near = i;
        const QModelIndex at = m_model->index(near);
        m_list->setCurrentIndex(at);
        m_list->selectionModel()->select(at, QItemSelectionModel::ClearAndSelect);
    }
    m_place->setEnabled(count > 0);
    m_all->setEnabled(count > 0);
}

bool OpTray::eventFilter(QObject* watched, QEvent* event)
{
    if (watched == m_list->viewport() && dragEvent(event)) return true;
    if (watched == m_list && event->type() == QEvent::KeyPress && m_drag && m_drag->moving &&
        static_cast<QKeyEvent*>(event)->key() == Qt::Key_Escape) {
        m_drag.reset();
        m_list->viewport()->unsetCursor();
        emit opDragCancelled();
        return true;
    }
    return QWidget::eventFilter(watched, event);
}

// Whether the event belongs to a drag, of which the list is not to know.
bool OpTray::dragEvent(QEvent* event)
{
    if (event->type() == QEvent::MouseButtonPress) {
        const auto* mouse = static_cast<QMouseEvent*>(event);
        const QModelIndex index = m_list->indexAt(mouse->position().toPoint());
        m_drag.reset();
        if (mouse->button() == Qt::LeftButton && mouse->modifiers() == Qt::NoModifier && index.isValid())
            m_drag =
                DragOut{mouse->globalPosition().toPoint(), m_model->ops()[static_cast<std::size_t>(index.row())].op};
        return false; // the list selects it
    }
    if (!m_drag) return false;
    if (event->type() == QEvent::MouseMove) {
        const QPoint at = static_cast<QMouseEvent*>(event)->globalPosition().toPoint();
        if (!m_drag->moving && (at - m_drag->from).manhattanLength() < QApplication::startDragDistance()) return true;
        m_drag->moving = true;
        m_list->viewport()->setCursor(Qt::ClosedHandCursor);
        emit opDragged(m_drag->op, at);
        return true;
    }
    if (event->type() == QEvent::MouseButtonRelease) {
        const DragOut drag = *m_drag;
        m_drag.reset();
        if (!drag.moving) return false;
        m_list->viewport()->unsetCursor();
        emit opDropped(drag.op, static_cast<QMouseEvent*>(event)->globalPosition().toPoint());
        return true;
    }
    return false;
}

int OpTray::heightFor(int width) const
{
    const QMargins around = layout()->contentsMargins();
    const int frame = 2 * m_list->frameWidth() + 4, bar = 16;
    const int across = std::max(1, (width - around.left() - around.right() - frame - bar) / chipWidth);
    const int rows = std::clamp((count() + across - 1) / across, 1, 4);
    return around.top() + m_all->sizeHint().height() + layout()->spacing() + rows * chipHeight + frame + 4 +
           around.bottom();
}

std::vector<Op> OpTray::chosen() const
{
    std::vector<Op> out;
    QModelIndexList rows = m_list->selectionModel()->selectedIndexes();
    std::sort(rows.begin(), rows.end());
    for (const QModelIndex& index : rows) out.push_back(m_model->ops()[static_cast<std::size_t>(index.row())].op);
    return out;
}

void OpTray::setPlacesAll(bool offered) { m_all->setVisible(offered); }

void OpTray::setTheme(const Theme& theme)
{
    m_theme = &theme;
    m_list->viewport()->update();
}

} // namespace stagewright
