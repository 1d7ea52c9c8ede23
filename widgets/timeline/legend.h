// Legend: one line that explains the colours, the hatch and the outline; only kinds that occur.
#pragma once

#include <memory>
#include <vector>

#include <QWidget>

#include "widgets/theme.h"
#include "widgets/themed_widget.h"
#include "widgets/timeline/timeline_panel.h"

namespace stagewright {

class Legend : public ThemedWidget {
    Q_OBJECT

public:
    explicit Legend(QWidget* parent = nullptr);
    void setPanels(const std::vector<std::shared_ptr<const TimelinePanel>>& panels);
    void setSlack(bool shown); // ops fade with their slack
    QSize sizeHint() const override { return {600, 28}; }
    QSize minimumSizeHint() const override { return {200, 28}; }
    int lines() const { return static_cast<int>(lineStarts(width()).size()); }
    // In one line if it fits behind the gutter, else in as many as the width needs.
    void paintTo(QPainter& painter, const QRectF& rect, const Theme& theme) const;
    double heightFor(double width) const; // 28, plus 20 per further line

    struct Entry {
        enum class Look {
            Fill,
            Faded,
            Pair,
            Exposed, // gathers and reductions that no op hides
            Hatch,
            Outline,
            Kernels, // of a class
            Ranges,  // pale, by name
        };
        Look look = Look::Fill;
        Paint paint = Paint::Forward;
        QString text;
        int tint = 0;
        KernelClass of = KernelClass::Other;
    };
    const std::vector<Entry>& entries() const { return m_entries; }

protected:
    void paintEvent(QPaintEvent*) override;
    void resizeEvent(QResizeEvent*) override { keepWhole(); }

private:
    void keepWhole();                                        // sets the height that its lines need at this width
    std::vector<std::size_t> lineStarts(double width) const; // of the entries; one if all fit behind the gutter
    std::vector<Entry> m_entries;
    bool m_slack = false;
};

} // namespace stagewright
