// BlockView: a building block drawn on its slots: the passes of one microbatch on every device, the passes of the
// following microbatches faint behind them, a rule at every interval. Passes are dragged or moved with the keyboard:
// Left and Right select a pass, Up and Down the device, Ctrl+Left and Ctrl+Right move it by one slot. GUI thread only.
#pragma once

#include <optional>

#include <QWidget>

#include "schedules/heuristic/building_block.h"
#include "widgets/theme.h"
#include "widgets/themed_widget.h"

namespace stagewright {

struct BlockPass {
    int device = -1;
    int chunk = 0;
    OpKind kind{}; // Forward, InputGrad or WeightGrad
    bool operator==(const BlockPass&) const = default;
};

int slotOf(const Block& block, const BlockPass& pass);           // notPlaced if the block has none
Block withPassAt(Block block, const BlockPass& pass, int slot);  // not checked
std::vector<BlockPass> passesOf(const Block& block, int device); // placed ones, by slot

class BlockView : public ThemedWidget {
    Q_OBJECT
public:
    explicit BlockView(QWidget* parent = nullptr);
    void setBlock(const Block& block); // unplaced W's are drawn hatched where the schedule would place them
    const Block& block() const { return m_block; }
    void setFault(bool fault); // outlined in the fault colour
    std::optional<BlockPass> selected() const { return m_selected; }
    void select(const std::optional<BlockPass>& pass);
    QRectF rectOf(const BlockPass& pass) const;
    QSize sizeHint() const override;
    QSize minimumSizeHint() const override { return {400, 120}; }

signals:
    void edited(const stagewright::Block& block); // while dragging too
    void selectionChanged();

protected:
    void paintEvent(QPaintEvent*) override;
    void mousePressEvent(QMouseEvent* event) override;
    void mouseMoveEvent(QMouseEvent* event) override;
    void mouseReleaseEvent(QMouseEvent* event) override;
    void keyPressEvent(QKeyEvent* event) override;
    void focusInEvent(QFocusEvent* event) override;

private:
    int slotCount() const; // that are drawn
    double slotWidth() const;
    double rowTop(int device) const;
    std::optional<BlockPass> passAt(QPointF point) const;
    void moveSelected(int slot);

    Block m_block;
    Block m_full; // with every W
    std::optional<BlockPass> m_selected;
    bool m_dragging = false;
    int m_grip = 0; // slots from the start of the pass to the pointer
    bool m_fault = false;
};

} // namespace stagewright
