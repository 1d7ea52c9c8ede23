// OpTray: the ops that the schedule's shape needs and that are not placed yet. Ops that could start now come first;
// Return or a double click places the selected ones, and each can be dragged to a row.
#pragma once

#include <optional>
#include <vector>

#include <QAbstractListModel>
#include <QWidget>

#include "schedules/model/op.h"
#include "widgets/theme.h"

class QLabel;
class QListView;
class QPushButton;

namespace stagewright {

// An unplaced op, and whether all its inputs are placed.
struct TrayOp {
    Op op;
    int rank = 0;
    bool ready = false;
};

class OpTrayModel : public QAbstractListModel {
    Q_OBJECT
public:
    using QAbstractListModel::QAbstractListModel;
    void setOps(std::vector<TrayOp> ops, const Theme& theme);
    const std::vector<TrayOp>& ops() const { return m_ops; }
    int rowCount(const QModelIndex& parent = {}) const override;
    QVariant data(const QModelIndex& index, int role = Qt::DisplayRole) const override;

private:
    std::vector<TrayOp> m_ops;
    const Theme* m_theme = &Theme::light();
};

class OpTray : public QWidget {
    Q_OBJECT
public:
    explicit OpTray(QWidget* parent = nullptr);
    void setOps(std::vector<TrayOp> ops); // keeps the selection where it still exists
    std::vector<Op> chosen() const;
    int count() const { return m_model->rowCount(); }
    void setPlacesAll(bool offered); // whether one button places every op
    void setTheme(const Theme& theme);
    QListView* list() { return m_list; }
    int heightFor(int width) const; // with the chips in at most four rows; the rest scrolls

signals:
    void placeAsked(const std::vector<stagewright::Op>& ops); // each at its earliest place
    void placeAllAsked();
    // While an op is dragged out of the tray, the pointer's place on the screen; Esc cancels.
    void opDragged(const stagewright::Op& op, const QPoint& globalPosition);
    void opDropped(const stagewright::Op& op, const QPoint& globalPosition);
    void opDragCancelled();

protected:
    bool eventFilter(QObject* watched, QEvent* event) override; // of the list and its viewport

private:
    bool dragEvent(QEvent* event);
    struct DragOut {
        QPoint from;
        Op op;
        bool moving = false;
    };
    std::optional<DragOut> m_drag;
    OpTrayModel* m_model;
    QListView* m_list;
    QLabel* m_title;
    QPushButton *m_place, *m_all;
    const Theme* m_theme = &Theme::light();
};

} // namespace stagewright
