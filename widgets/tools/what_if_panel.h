// WhatIfPanel: the fields of a what-if question about the run shown, and its answer in figures. Every change is
// announced at once; reset undoes all. GUI thread only.
#pragma once

#include "widgets/panel/section_column.h"
#include "widgets/tools/what_if_picture.h"

class QComboBox;
class QDoubleSpinBox;
class QLineEdit;
class QPushButton;
class QSlider;
class QSpinBox;

namespace stagewright {

class FactorField;

class WhatIfPanel : public SectionColumn {
    Q_OBJECT
public:
    explicit WhatIfPanel(QWidget* parent = nullptr);

    // bounds of the fields; resets if the shape changes
    void setSchedule(const Schedule& schedule, const CostModel& costs);
    // The error in the text of further changes, if invalid.
    Result<WhatIfQuestion> question() const;
    void setFurther(const QString& changes); // as in --what-if
    void reset();
    void setPicture(const WhatIfPicture& picture, const WhatIfQuestion& question, const Units& units);
    void setFault(const Error& error);

signals:
    void changed();
    void closeAsked();

private:
    void tell();

    QComboBox *m_kind, *m_link, *m_rule, *m_sends;
    QSpinBox *m_stage, *m_rank, *m_channels, *m_microbatches;
    FactorField *m_ops, *m_links;
    QDoubleSpinBox* m_latency;
    QLineEdit* m_further;
    QPushButton *m_reset, *m_close;
    PanelSection *m_costs, *m_messages, *m_more, *m_figures, *m_peaks;
    int m_ranks = 0, m_stages = 0, m_microbatchesNow = 0;
    bool m_quiet = false;
};

} // namespace stagewright
