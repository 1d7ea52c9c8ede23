// LoweredPanel: the form and the figures of the lowered view: the rule that inserts sends and receives into the lists,
// how messages travel, and how much each channel is used. GUI thread only.
#pragma once

#include "widgets/panel/section_column.h"
#include "widgets/tools/lowered_picture.h"

class QCheckBox;
class QComboBox;
class QDoubleSpinBox;
class QLabel;
class QPushButton;
class QSpinBox;

namespace stagewright {

class LoweredPanel : public SectionColumn {
    Q_OBJECT
public:
    explicit LoweredPanel(QWidget* parent = nullptr);
    Lowering lowering() const;
    Channels channels() const;
    double latency() const; // in forwards of a rank; < 0: from the run's costs
    void setPicture(const LoweredPicture& picture, const Units& units);

signals:
    void changed();       // a field
    void deadlockAsked(); // the cycle of an order that hangs
    void closeAsked();

private:
    QComboBox *m_rule, *m_sends, *m_receives;
    QSpinBox *m_ahead, *m_perDirection;
    QCheckBox* m_oneStream;
    QDoubleSpinBox* m_latency;
    QPushButton *m_deadlock, *m_close;
    PanelSection *m_form, *m_figures, *m_channels;
};

} // namespace stagewright
