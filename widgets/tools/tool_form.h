// ToolForm: labelled fields below each other, for tool panels.
#pragma once

#include <QDoubleSpinBox>
#include <QGridLayout>
#include <QLabel>
#include <QSpinBox>
#include <QWidget>

#include "widgets/style.h"

namespace stagewright {

class ToolForm : public QWidget {
public:
    explicit ToolForm(QWidget* parent = nullptr) : QWidget(parent), m_grid(new QGridLayout(this))
    {
        m_grid->setContentsMargins(0, 0, 0, 0);
        m_grid->setHorizontalSpacing(10);
        m_grid->setVerticalSpacing(7);
        m_grid->setColumnStretch(1, 1);
    }
    QWidget* add(const QString& title, QWidget* field, const QString& tooltip)
    {
        auto* label = makeLabel(title, "secondary", this);
        label->setBuddy(field);
        label->setToolTip(tooltip);
        field->setToolTip(tooltip);
        field->setAccessibleName(title);
        const int row = m_grid->rowCount();
        m_grid->addWidget(label, row, 0);
        m_grid->addWidget(field, row, 1);
        return field;
    }

private:
    QGridLayout* m_grid;
};

} // namespace stagewright
